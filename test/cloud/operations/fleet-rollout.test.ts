import { expect, onTestFinished, test } from 'vitest'
import { readDesired, storeUpdateReports } from '../../../cloud/gateway/desired-state.ts'
import {
  changeRollout,
  rolloutWork,
  showRollout,
  startRollout,
} from '../../../cloud/operations/releases/rollouts.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { reportOf } from '../../../edge/update/files.ts'
import { RefusedRelease, update } from '../../../edge/update/updater.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { seededChance } from '../../simulation/chance.ts'
import { isLongRun } from '../../support/long-tests.ts'
import { addTestRelease } from '../../support/release.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { seedHub } from '../../world/seeds.ts'
import { NEW, OLD, PowerCut, updateBoard, updaterSettings, type Health } from '../../world/update-board.ts'
import { testMedia } from '../support/media.ts'

const HUBS = 30
const TICK_MS = 5000
const REBOOT_MS = 20_000

interface FleetOptions {
  newVersion?: Health
  powerCuts?: boolean
  /** Why the hubs refuse the release. */
  refusal?: string
  seed?: number
}

/** A database with connected hubs and the new release. */
async function openFleet(hubs: number, runtime = virtualRuntime()) {
  const db = openDatabase({ url: 'sqlite::memory:' })
  onTestFinished(() => db.close())
  await db.migrate()
  const context = testContext(db, runtime)
  await addTestRelease(context, testMedia(context), NEW)
  for (let hubId = 1; hubId <= hubs; hubId += 1) {
    await seedHub(db, hubId)
    const session = { session: '0'.repeat(32), process_id: 'one', is_connected: 1, lease_until: 0 } as const
    await db.kysely
      .insertInto('hub_sessions')
      .values({ hub_id: hubId, ...session, software: OLD, last_heard_at: 0 })
      .execute()
  }
  const start = (...waves: string[]) =>
    db.transact((tx) => startRollout(tx, context, { version: NEW, waves, failures: '10%' }))
  const work = rolloutWork(context, 'https://larder.example/releases')['rollout']!
  const run = async (id: string) => (await work.run({ subject: id } as never)).next
  return { db, context, clock: runtime.clock, start, run }
}

/** Hubs with orders in progress and the previous release, and a rollout to all of them. */
async function fleet({ newVersion = 'healthy', powerCuts = false, refusal, seed = 1 }: FleetOptions = {}) {
  const chance = seededChance(seed)
  const runtime = virtualRuntime()
  const { clock } = runtime
  const { db, start, run: step } = await openFleet(HUBS, runtime)
  const ended = new AbortController()
  const hubs = Array.from({ length: HUBS }, (_, index) => {
    const cutAt = powerCuts ? chance.between(1, 9) : Infinity
    const board = updateBoard({ clock, newVersion, changesJournal: index % 2 === 0, cutAt })
    board.disk.desired = null
    if (refusal !== undefined) board.world.install = () => Promise.reject(new RefusedRelease(refusal))
    // Every third hub has an order in progress at the start.
    let busyUntil = index % 3 === 0 ? clock.now() + chance.between(0, 600_000) : 0
    const hub = { hubId: index + 1, board, cuts: 0, darkMs: 0, sold: 0, stoppedDuringOrders: 0 }
    board.world.isBusy = () => clock.now() < busyUntil
    const stop = board.world.service.stop.bind(board.world.service)
    board.world.service.stop = async () => {
      if (board.linked() === OLD && clock.now() < busyUntil) hub.stoppedDuringOrders += 1
      await stop()
    }
    const run = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        try {
          await update(board.world, updaterSettings)
        } catch (error) {
          if (error instanceof RefusedRelease) continue
          if (!(error instanceof PowerCut)) throw error
          hub.cuts += 1
          board.cut()
          await sleep(clock, REBOOT_MS)
          board.boot()
        }
        await sleep(clock, updaterSettings.checkMs)
      }
    }
    const sell = (): void => {
      if (!board.serves()) hub.darkMs += TICK_MS
      else if (clock.now() >= busyUntil && chance.happens(0.02)) {
        busyUntil = clock.now() + 60_000
        hub.sold += 1
      }
    }
    return { ...hub, hub, run, sell }
  })
  const id = await start('1', '10%', '100%')
  const runs = hubs.map(({ run }) => run())
  return {
    hubs: hubs.map(({ hub }) => hub),
    show: () => showRollout(db.kysely, id),
    /** Passes time until the rollout and its hubs have ended. */
    untilEnd: async (): Promise<void> => {
      let isOpen = true
      for (let ticks = 0; isOpen && ticks < 5000; ticks += 1) {
        await clock.pass(TICK_MS)
        for (const { hubId, board, sell } of hubs) {
          sell()
          if (!board.serves()) continue
          // The hub is connected: it receives its desired release, and sends a hello.
          board.disk.desired = (await readDesired(db.kysely, hubId)).software ?? null
          const report = reportOf(board.disk.state)
          await db.transact((tx) =>
            storeUpdateReports(tx, clock.now(), [
              { hubId, hello: { desired: { applied: 1, failed: null, ...(report && { update: report }) } } },
            ]),
          )
          const heard = { software: `larder-edge ${board.linked()}`, last_heard_at: clock.now() }
          await db.kysely.updateTable('hub_sessions').set(heard).where('hub_id', '=', hubId).execute()
        }
        isOpen = (await step(id)) !== null
      }
      ended.abort()
      await clock.pass(updaterSettings.confirmMs * 2)
      await Promise.all(runs)
    },
  }
}

test('a good release reaches all 30 hubs during sales, and no hub stops during an order or is dark for more than a minute', async () => {
  const { hubs, untilEnd, show } = await fleet()
  await untilEnd()
  const shown = await show()
  expect(shown.state).toBe('completed')
  expect(shown.hubs.map(({ state }) => state)).toEqual(Array<string>(HUBS).fill('succeeded'))
  for (const { board, darkMs, stoppedDuringOrders } of hubs) {
    expect([board.linked(), board.serves(), stoppedDuringOrders]).toEqual([NEW, true, 0])
    expect(darkMs).toBeLessThanOrEqual(60_000)
  }
  expect(hubs.reduce((sum, { sold }) => sum + sold, 0)).toBeGreaterThan(HUBS)
}, 120_000)

test.each(['crashes', 'never becomes ready', 'loses a controller'] as const)(
  'a release that %s is tried by the first wave only, which returns in time',
  async (newVersion) => {
    const { hubs, untilEnd, show } = await fleet({ newVersion })
    await untilEnd()
    const shown = await show()
    expect(shown.state).toBe('stopped')
    expect(shown.hubs[0]).toMatchObject({ hub_id: 1, state: 'rolled_back' })
    expect(shown.hubs[0]!.error).toBeTruthy()
    expect(shown.hubs.slice(1).every(({ state }) => state === 'pending')).toBe(true)
    expect(hubs[0]!.board.ran).toEqual([NEW, OLD])
    expect(hubs.slice(1).flatMap(({ board }) => board.ran)).toEqual([])
    for (const { board } of hubs) expect([board.linked(), board.serves()]).toEqual([OLD, true])
  },
  120_000,
)

test('a release that the hubs refuse is reported with the reason by the first wave only, and no hub stops', async () => {
  const refusal = 'the list of releases: a signature is wrong'
  const { hubs, untilEnd, show } = await fleet({ refusal })
  await untilEnd()
  const { state, hubs: shown } = await show()
  expect([state, shown[0]]).toEqual(['stopped', { hub_id: 1, wave: 1, state: 'rolled_back', error: refusal }])
  expect(new Set(shown.slice(1).map((hub) => hub.state))).toEqual(new Set(['pending']))
  for (const { board, darkMs } of hubs) expect([board.ran, darkMs]).toEqual([[], 0])
}, 120_000)

test.each(isLongRun ? [1, 2, 3, 4, 5] : [1])(
  'after power failures at random steps every hub serves, with the new release (seed %i)',
  async (seed) => {
    const { hubs, untilEnd, show } = await fleet({ powerCuts: true, seed })
    await untilEnd()
    expect((await show()).state).toBe('completed')
    for (const { board } of hubs) expect([board.linked(), board.serves()]).toEqual([NEW, true])
    expect(hubs.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(15)
  },
  120_000,
)

test('a run of a rollout gives the release to at most 50 hubs in the order of their ids, and runs again at once', async () => {
  const { db, context, start, run } = await openFleet(60)
  const given = async () => {
    const rows = await db.kysely
      .selectFrom('rollout_hubs')
      .select('hub_id')
      .where('given_at', 'is not', null)
      .orderBy('hub_id')
      .execute()
    return rows.map((row) => row.hub_id)
  }
  const now = context.runtime.clock.now()
  const id = await start('100%')
  expect(await run(id)).toBe(now)
  expect(await given()).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
  expect(await run(id)).toBeGreaterThan(now)
  expect(await given()).toHaveLength(60)
  await db.kysely.updateTable('hubs').set({ retired_at: now }).execute()
  expect(await run(id)).toBe(now)
  expect((await showRollout(db.kysely, id)).state).toBe('running')
  expect(await run(id)).toBe(null)
  const { state, hubs } = await showRollout(db.kysely, id)
  expect([state, new Set(hubs.map((hub) => hub.error))]).toEqual(['completed', new Set(['retired'])])
})

test('an aborted rollout does not withdraw the release that the next rollout gave', async () => {
  const { db, context, start, run } = await openFleet(1)
  const first = await start('100%')
  await run(first)
  await db.transact((tx) => changeRollout(tx, context, first, 'abort'))
  const second = await start('100%')
  await run(second)
  await run(first)
  expect((await readDesired(db.kysely, 1)).software).toMatchObject({ rollout: second })
})

test('a rollout that pauses because no hub of a wave installs the release has one alarm, until a person resumes it', async () => {
  const { db, context, clock, start, run } = await openFleet(3)
  const alarms = async () => {
    const rows = await db.kysely
      .selectFrom('alarms')
      .select(['kind', 'hub_id', 'message', 'cleared_at'])
      .execute()
    return rows.map(({ cleared_at, ...row }) => ({ ...row, isOpen: cleared_at === null }))
  }
  const id = await start('1', '100%')
  await run(id)
  // The hub is connected for the whole time, and reports no progress.
  await clock.pass(context.settings.rolloutOfflineMs)
  await db.kysely.updateTable('hub_sessions').set({ last_heard_at: clock.now() }).execute()
  await run(id)
  await run(id)
  expect((await showRollout(db.kysely, id)).state).toBe('paused')
  expect((await readDesired(db.kysely, 2)).software).toBeNull()
  const alarm = { kind: 'update_failed', hub_id: null }
  expect(await alarms()).toMatchObject([{ ...alarm, isOpen: true }])
  await db.transact((tx) => changeRollout(tx, context, id, 'resume'))
  await run(id)
  expect(await alarms()).toMatchObject([{ ...alarm, isOpen: false }])
  expect((await readDesired(db.kysely, 2)).software).toMatchObject({ rollout: id })
  expect((await readDesired(db.kysely, 3)).software).toBeNull()
})
