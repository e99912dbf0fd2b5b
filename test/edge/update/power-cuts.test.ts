import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { UpdateTrial } from '../../../edge/update/trial.ts'
import { update, type UpdaterWorld } from '../../../edge/update/updater.ts'
import { systemWorld } from '../../../edge/update/world.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { seededChance, type Chance } from '../../simulation/chance.ts'
import { NEW, OLD, PowerCut, releaseOf, updaterSettings } from '../../world/update-board.ts'
import { call, cutPower, startDisk, type Disk } from './mortal-disk.ts'

vi.mock('node:fs', async (original) => {
  const { mortal } = await import('./mortal-disk.ts')
  return mortal(await original<typeof import('node:fs')>())
})

/** Tables of the journal, by version of the hub's service. */
const tablesOf: Readonly<Record<string, number>> = { [OLD]: 1, [NEW]: 2 }

/** A board with the updater's real files, and a service that needs its program and its journal. It sells whenever it may. */
class Board {
  readonly store: string
  readonly world: UpdaterWorld
  readonly #isGood: boolean
  #running: string | undefined
  #trial: UpdateTrial | undefined
  sales = 0

  constructor(folder: string, isGood: boolean) {
    this.#isGood = isGood
    this.store = join(folder, 'hub.sqlite')
    let time = 0
    const clock: Clock = {
      now: () => time,
      monotonic: () => time,
      after(delayMs, task) {
        time += delayMs
        queueMicrotask(task)
        return () => {}
      },
    }
    const settings = { store: this.store, update: {} } as never
    const world = systemWorld(settings, { clock } as never, silentLog)
    this.world = {
      ...world,
      desired: () => releaseOf(NEW),
      running: () => world.linked() ?? OLD,
      install: async () => Promise.resolve(),
      service: {
        stop: async () => call(folder, () => this.stop()),
        start: async () => call(folder, () => this.start()),
      },
      health: () => {
        const health = this.#health()
        if (health && !this.#trial!.check()) this.sell()
        return Promise.resolve(health)
      },
    }
  }

  stop(): void {
    this.#running = undefined
  }

  /** The launcher runs the linked release. A service refuses the tables of a later version. */
  start(): void {
    if (this.#running !== undefined) return
    const version = this.world.running()
    const own = tablesOf[version]!
    this.#journal((db) => {
      const found = Number(db.pragma('user_version', { simple: true }))
      if (found > own) return
      if (found < own) db.pragma(`user_version = ${own}`)
      this.#running = version
    })
    if (this.#running !== undefined) this.#trial = new UpdateTrial(this.store, updaterSettings.confirmMs, own)
  }

  sell(): void {
    if (this.#running === undefined || this.#trial!.check()) throw new Error('the hub does not sell')
    this.#journal((db) => db.exec('INSERT INTO orders (ended_at) VALUES (1)'))
    this.sales += 1
  }

  sold(): number {
    return this.#journal((db) => {
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
      return (db.prepare('SELECT count(*) AS n FROM orders').get() as { n: number }).n
    })
  }

  /** The journal before the first sale. */
  create(): void {
    const db = new Sqlite(this.store)
    db.pragma('journal_mode = WAL')
    // SQLite's own safety is not under test.
    db.pragma('synchronous = OFF')
    db.exec('CREATE TABLE orders (ended_at INTEGER)')
    db.pragma('user_version = 1')
    db.close()
  }

  #journal<T>(work: (db: InstanceType<typeof Sqlite>) => T): T {
    const db = new Sqlite(this.store, { fileMustExist: true })
    try {
      db.pragma('synchronous = OFF')
      return work(db)
    } finally {
      db.close()
    }
  }

  #health() {
    if (this.#running === undefined) return undefined
    const problem = this.#running === NEW && !this.#isGood ? 'never becomes ready' : undefined
    return { version: this.#running, problem, silent: [] }
  }
}

/** Updates a hub while the power fails after these numbers of calls, and returns the disk. */
async function updateWithCuts(chance: Chance, cuts: readonly number[], isGood: boolean): Promise<Disk> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-cuts-'))
  const board = new Board(folder, isGood)
  const disk = startDisk(folder, [join(updateFiles(board.store).releases, NEW)])
  board.create()
  board.start()
  for (let sales = 0; sales < 3; sales += 1) board.sell()
  for (const cutAfter of [...cuts, Infinity]) {
    disk.cutAfter = cutAfter
    try {
      await update(board.world, updaterSettings)
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error
      board.stop()
      cutPower(disk, chance)
      // systemd starts the service and the updater.
      board.start()
    }
  }
  const link = board.world.running()
  expect({ link, step: board.world.state.read().now.step }).toEqual({
    link: isGood ? NEW : OLD,
    step: 'idle',
  })
  expect(board.sold()).toBe(board.sales)
  board.sell()
  expect(board.sold()).toBe(board.sales)
  return disk
}

/** `POWER_CUTS=100` plays more instants. */
const INSTANTS = Number(process.env['POWER_CUTS'] ?? 12)

test(`a hub loses no sale, starts and sells after power failures at ${INSTANTS} random instants of a switch`, async () => {
  const chance = seededChance(36)
  const callsOf = [
    (await updateWithCuts(chance, [], false)).calls,
    (await updateWithCuts(chance, [], true)).calls,
  ]
  let lossy = 0
  for (let instant = 0; instant < INSTANTS; instant += 1) {
    const isGood = chance.happens(0.5)
    const cuts = Array.from({ length: chance.pick([1, 1, 1, 2]) }, () =>
      chance.between(1, callsOf[Number(isGood)]!),
    )
    if ((await updateWithCuts(chance, cuts, isGood)).undone > 0) lossy += 1
  }
  if (process.env['POWER_CUTS'] !== undefined)
    console.log(
      `${INSTANTS} power failures in switches of ${callsOf.join(' or ')} calls; ${lossy} lost something that was not synced`,
    )
  // Failures that lose nothing would prove little.
  expect(lossy).toBeGreaterThan(INSTANTS / 4)
})
