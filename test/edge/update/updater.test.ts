import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { reportOf, UpdateState } from '../../../edge/update/files.ts'
import { Progress } from '../../../edge/update/progress.ts'
import { RefusedRelease, update } from '../../../edge/update/updater.ts'
import { systemWorld } from '../../../edge/update/world.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
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

test.each([
  ['before the new version has connected', 'the cloud does not welcome the hub'],
  ['while the new version is healthy', undefined],
])(
  'a machine that is suspended %s gives no version up, and confirms it only after a steady time',
  async (_name, problem) => {
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
    const hub = updateBoard({ clock })
    const health = hub.world.health.bind(hub.world)
    let checks = 0
    let resumedAt = 0
    hub.world.health = async () => {
      const found = await health()
      checks += 1
      if (checks === 3) resumedAt = time += 600_000
      return found && checks <= 3 ? { ...found, problem } : found
    }
    await update(hub.world, updaterSettings)
    expect(hub.disk).toMatchObject({ link: NEW, state: { last: { error: null } } })
    expect(time - resumedAt).toBeGreaterThanOrEqual(updaterSettings.steadyMs)
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

test('a version that is given up reports how many reports are lost with its journal', async () => {
  const hub = updateBoard({ newVersion: 'never becomes ready', changesJournal: true })
  hub.disk.lost = 2
  await update(hub.world, updaterSettings)
  expect(hub.disk.state.last?.error).toBe('never becomes ready; 2 reports of this version are lost')
})

test('a download that fails leaves the running version untouched, is reported with its reason, and is tried again', async () => {
  const hub = updateBoard()
  const isCut = [true, false]
  const work = hub.world.install.bind(hub.world)
  hub.world.install = (release) =>
    isCut.shift() ? Promise.reject(new Error('the cloud is not reached')) : work(release)
  await expect(update(hub.world, updaterSettings)).rejects.toThrow('not reached')
  expect(hub.disk.link).toBe(null)
  expect(reportOf(hub.disk.state)).toMatchObject({ state: 'downloading', error: 'the cloud is not reached' })
  await update(hub.world, updaterSettings)
  expect(hub.disk.link).toBe(NEW)
})

const full = (): never => {
  throw new Error('the disk is full')
}

test.each(['backUp', 'link'] as const)(
  'an error of %s between the stop and the new version ends the update with its reason, and the former version serves',
  async (effect) => {
    const hub = updateBoard()
    hub.world[effect] = full
    await update(hub.world, updaterSettings)
    const last = { release: releaseOf(NEW), error: 'the disk is full' }
    expect(hub.disk).toMatchObject({ link: null, state: { now: { step: 'idle' }, last } })
    await update(hub.world, updaterSettings)
    expect([hub.ran, hub.serves()]).toEqual([[OLD], true])
  },
)

test('a link that is not durable is put back before the service starts', async () => {
  const hub = updateBoard()
  const link = hub.world.link.bind(hub.world)
  hub.world.link = (version) => {
    link(version)
    if (version === NEW) full()
  }
  await update(hub.world, updaterSettings)
  expect(hub.disk).toMatchObject({ link: null, state: { last: { error: 'the disk is full' } } })
  expect(hub.ran).toEqual([OLD])
})

test('a hub that cannot write its state serves, and no later attempt stops it', async () => {
  const hub = updateBoard()
  const { state, service } = hub.world
  const [write, stop] = [state.write.bind(state), service.stop.bind(service)]
  let stops = 0
  service.stop = async () => {
    stops += 1
    state.write = full
    await stop()
  }
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(update(hub.world, updaterSettings)).rejects.toThrow('the disk is full')
    expect([hub.serves(), hub.linked(), stops]).toEqual([true, OLD, 1])
  }
  state.write = write
  service.stop = stop
  await update(hub.world, updaterSettings)
  expect(hub.disk.link).toBe(NEW)
})

test('a version that fills the disk and never becomes ready is given up, and is not tried again', async () => {
  const hub = updateBoard({ newVersion: 'never becomes ready', changesJournal: true })
  const { state, service } = hub.world
  const [write, start] = [state.write.bind(state), service.start.bind(service)]
  service.start = async () => {
    await start()
    if (hub.linked() === NEW) state.write = full
  }
  const progress = new Progress(hub.world)
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await update(hub.world, updaterSettings, progress).catch(() => {})
    expect([hub.linked(), hub.serves(), hub.ran]).toEqual([OLD, true, [NEW, OLD]])
  }
  state.write = write
  await update(hub.world, updaterSettings, progress)
  const last = { release: releaseOf(NEW), error: 'never becomes ready' }
  expect(hub.disk).toMatchObject({ link: null, journal: 1, state: { now: { step: 'idle' }, last } })
})

test('a power failure before any effect of a return on a full disk leaves a hub that serves its former version', async () => {
  for (let cutAt = 1, isCut = true; isCut; cutAt += 1) {
    const hub = updateBoard({ newVersion: 'never becomes ready', changesJournal: true })
    hub.disk.state = {
      now: { step: 'confirming', to: releaseOf(NEW), from: null, starts: 0, absent: [] },
      last: null,
    }
    Object.assign(hub.disk, { link: NEW, copy: 1 })
    hub.boot()
    const write = hub.world.state.write.bind(hub.world.state)
    hub.world.state.write = full
    hub.cutAt(cutAt)
    isCut = await update(hub.world, updaterSettings).then(
      () => false,
      (error: unknown) => error instanceof PowerCut,
    )
    hub.boot()
    await update(hub.world, updaterSettings).catch(() => {})
    expect({ cutAt, link: hub.linked(), serves: hub.serves() }).toEqual({ cutAt, link: OLD, serves: true })
    hub.disk.desired = null
    hub.world.state.write = write
    await update(hub.world, updaterSettings)
    expect([hub.serves(), hub.disk.state.now.step]).toEqual([true, 'idle'])
  }
})

test.each(['withdrawn', 'refused', 'given up'] as const)(
  'a release that is %s leaves nothing on the disk',
  async (fate) => {
    const hub = updateBoard({ newVersion: fate === 'given up' ? 'crashes' : 'healthy' })
    if (fate === 'withdrawn') {
      const busy = [true, true]
      hub.world.isBusy = () => {
        if (busy.pop() === undefined) hub.disk.desired = null
        return true
      }
    }
    if (fate === 'refused')
      hub.world.install = ({ version }) => {
        hub.disk.installed.add(version)
        return Promise.reject(new RefusedRelease('expired'))
      }
    await update(hub.world, updaterSettings).catch(() => {})
    expect([...hub.disk.installed]).toEqual([])
  },
)

test('a download begins after all versions that the hub does not need are removed', async () => {
  const hub = updateBoard()
  hub.disk.link = OLD
  for (const version of [OLD, '2026.1.1+9']) hub.disk.installed.add(version)
  const install = hub.world.install.bind(hub.world)
  hub.world.install = (release) => {
    expect([...hub.disk.installed]).toEqual([OLD])
    return install(release)
  }
  await update(hub.world, updaterSettings)
  expect([...hub.disk.installed]).toEqual([OLD, NEW])
})

test.each(['waiting', 'confirming'] as const)(
  'the updater starts a stopped service before it writes its state: %s',
  async (step) => {
    const hub = updateBoard()
    const isSwitched = step === 'confirming'
    const now = { step, to: releaseOf(NEW), from: null, starts: 0, absent: ['old'] }
    hub.disk.state = { now, last: null }
    hub.disk.link = isSwitched ? NEW : null
    await hub.world.service.stop()
    hub.world.state.write = full
    await expect(update(hub.world, updaterSettings)).rejects.toThrow('the disk is full')
    expect([hub.serves(), hub.ran]).toEqual([true, [isSwitched ? NEW : OLD]])
  },
)

test('a hub that gives up a version serves before it records the end, and ends later', async () => {
  const hub = updateBoard({ newVersion: 'never becomes ready' })
  const write = hub.world.state.write.bind(hub.world.state)
  hub.world.state.write = (state) => (state.now.step === 'idle' ? full() : write(state))
  await expect(update(hub.world, updaterSettings)).rejects.toThrow('the disk is full')
  expect([hub.linked(), hub.serves(), hub.disk.state.now.step]).toEqual([OLD, true, 'returning'])
  hub.world.state.write = write
  await update(hub.world, updaterSettings)
  const last = { release: releaseOf(NEW), error: 'never becomes ready' }
  expect(hub.disk).toMatchObject({ link: null, state: { now: { step: 'idle' }, last } })
  expect(hub.serves()).toBe(true)
})

test('a hub whose journal cannot be put back starts its former version', async () => {
  const hub = updateBoard({ newVersion: 'never becomes ready' })
  hub.world.restore = full
  await expect(update(hub.world, updaterSettings)).rejects.toThrow('the disk is full')
  expect([hub.linked(), hub.serves()]).toEqual([OLD, true])
})

const journals = [
  { journal: 'an absent file', isBusy: false, make: () => {} },
  { journal: 'a damaged file', isBusy: false, make: (path: string) => writeFileSync(path, 'x'.repeat(8192)) },
  { journal: 'a file that cannot be opened', isBusy: true, make: (path: string) => mkdirSync(path) },
  {
    journal: 'a file without the table of orders',
    isBusy: true,
    make: (path: string) => new Sqlite(path).exec('CREATE TABLE other (id INTEGER)').close(),
  },
]
test.each(journals)('the updater reads $journal as a hub with orders: $isBusy', async ({ make, isBusy }) => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-busy-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  make(store)
  expect(await systemWorld({ store } as never, systemRuntime(), silentLog).isBusy()).toBe(isBusy)
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
