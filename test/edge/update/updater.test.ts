import { expect, test } from 'vitest'
import { UpdateState } from '../../../edge/update/files.ts'
import { RefusedRelease, update } from '../../../edge/update/updater.ts'
import {
  NEW,
  OLD,
  PowerCut,
  releaseOf,
  rollouts,
  updateBoard,
  updaterSettings,
} from '../../world/update-board.ts'

const errors = {
  crashes: 'the service does not answer',
  'never becomes ready': 'never becomes ready',
  'loses a controller': 'no answer of controller front',
} as const

test('a healthy version is kept, and nothing remains of the update', async () => {
  const hub = updateBoard()
  await update(hub.world, updaterSettings)
  const last = { release: releaseOf(NEW), error: null }
  expect(hub.disk).toMatchObject({ link: NEW, state: { now: { step: 'idle' }, last } })
  expect(hub.ran).toEqual([NEW])
  await update(hub.world, updaterSettings)
  expect(hub.ran).toEqual([NEW])
})

test('the switch waits until no order is in progress', async () => {
  const hub = updateBoard()
  hub.disk.orders = 60
  await update(hub.world, updaterSettings)
  expect(hub.disk.link).toBe(NEW)
  expect(hub.elapsedMs()).toBeGreaterThanOrEqual(58_000)
})

test('an order that arrives before the stop gets its service back, and the switch waits for it', async () => {
  const hub = updateBoard()
  const answers = [false, true, true, false, false]
  hub.world.isBusy = () => answers.shift() ?? false
  await update(hub.world, updaterSettings)
  expect(hub.ran).toEqual([OLD, NEW])
})

test('a release that the cloud withdraws while an order is in progress is not installed', async () => {
  const hub = updateBoard()
  let checks = 0
  hub.world.isBusy = () => {
    checks += 1
    if (checks === 5) hub.disk.desired = null
    return true
  }
  await update(hub.world, updaterSettings)
  expect(hub.disk).toMatchObject({ link: null, state: { now: { step: 'idle' }, last: null } })
  expect(hub.ran).toEqual([])
})

test.each(['crashes', 'never becomes ready', 'loses a controller'] as const)(
  'a version that %s is given up in time with its reason, and is not tried again in this rollout',
  async (newVersion) => {
    const hub = updateBoard({ newVersion, changesJournal: true })
    await update(hub.world, updaterSettings)
    const last = { release: releaseOf(NEW), error: errors[newVersion] }
    expect(hub.disk).toMatchObject({ link: null, journal: 1, state: { now: { step: 'idle' }, last } })
    expect(hub.serves()).toBe(true)
    expect(hub.elapsedMs()).toBeLessThan(updaterSettings.confirmMs + 10_000)
    await update(hub.world, updaterSettings)
    expect(hub.ran).toEqual([NEW, OLD])
    hub.disk.desired = releaseOf(NEW, rollouts[1])
    await update(hub.world, updaterSettings)
    expect(hub.ran).toEqual([NEW, OLD, NEW, OLD])
  },
)

test('a release that is refused leaves the running version untouched, with the reason', async () => {
  const hub = updateBoard()
  hub.world.install = () => Promise.reject(new RefusedRelease('expired'))
  await expect(update(hub.world, updaterSettings)).rejects.toThrow('expired')
  const last = { release: releaseOf(NEW), error: 'expired' }
  expect(hub.disk).toMatchObject({ link: null, state: { now: { step: 'idle' }, last } })
  expect(hub.ran).toEqual([])
})

test('a journal that cannot be copied leaves a hub that serves its former version, with the reason', async () => {
  const hub = updateBoard()
  hub.world.backUp = () => {
    throw new RefusedRelease('the disk is full')
  }
  await update(hub.world, updaterSettings)
  const last = { release: releaseOf(NEW), error: 'the disk is full' }
  expect(hub.disk).toMatchObject({ link: null, state: { now: { step: 'idle' }, last } })
  expect([hub.ran, hub.serves()]).toEqual([[OLD], true])
})

test('a download that fails leaves the running version untouched, and is tried again', async () => {
  const hub = updateBoard()
  const isCut = [true, false]
  const work = hub.world.install.bind(hub.world)
  hub.world.install = (release) =>
    isCut.shift() ? Promise.reject(new Error('the cloud is not reached')) : work(release)
  await expect(update(hub.world, updaterSettings)).rejects.toThrow('not reached')
  expect(hub.disk.link).toBe(null)
  await update(hub.world, updaterSettings)
  expect(hub.disk.link).toBe(NEW)
})

const outcomes = [
  { newVersion: 'healthy', ends: NEW },
  { newVersion: 'never becomes ready', ends: OLD },
] as const
test.each(outcomes)(
  'a power failure before any effect leaves a hub that serves: $newVersion',
  async ({ newVersion, ends }) => {
    for (const changesJournal of [false, true]) {
      const whole = updateBoard({ newVersion, changesJournal })
      await update(whole.world, updaterSettings)
      expect(whole.effects()).toBeGreaterThan(6)
      for (let cutAt = 1; cutAt <= whole.effects(); cutAt += 1) {
        const hub = updateBoard({ newVersion, changesJournal, cutAt })
        await expect(update(hub.world, updaterSettings)).rejects.toThrow(PowerCut)
        hub.boot()
        await update(hub.world, updaterSettings)
        const found = {
          cutAt,
          link: hub.disk.link ?? OLD,
          serves: hub.serves(),
          step: hub.disk.state.now.step,
        }
        expect(found).toEqual({ cutAt, link: ends, serves: true, step: 'idle' })
      }
    }
  },
)

test('a version with which the board restarts repeatedly is given up', async () => {
  const hub = updateBoard({ newVersion: 'never becomes ready' })
  const health = hub.world.health.bind(hub.world)
  for (let start = 0; start < 3; start += 1) {
    hub.world.health = () => (hub.disk.link === null ? health() : Promise.reject(new PowerCut()))
    await update(hub.world, updaterSettings).catch(() => {})
    hub.boot()
  }
  await update(hub.world, updaterSettings)
  expect(hub.disk.state.last?.error).toBe('the board restarted repeatedly')
  expect(hub.disk.link).toBe(null)
})

test.each(['../../bin', '/etc', ''])('a stored state that returns to the path %j is not a state', (from) => {
  const now = { step: 'returning', to: releaseOf(NEW), from, error: 'an error' }
  expect(UpdateState.safeParse({ now: { ...now, from: OLD }, last: null }).success).toBe(true)
  expect(UpdateState.safeParse({ now, last: null }).success).toBe(false)
})
