import { describe, expect, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { makeImage } from '../../../simulator/firmware/image.ts'
import { uuid } from '../../support/uuid.ts'
import { imageOf } from '../../world/firmware.ts'
import { Crash, TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

const MINUTE = 60_000

/** From now on no writing transaction finds space on the disk. */
function fill(bench: TestHub): void {
  const total = bench.journal.prepare('SELECT total_changes()').pluck()
  const changes = (): unknown => total.get()
  let seen = changes()
  bench.onCheckpoint = (point) => {
    if (point !== 'journal.before-commit' || seen === changes()) return
    seen = changes()
    throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL')
  }
}

/** Another program locks the journal until `relieve`: no transaction begins. */
function lock(bench: TestHub): void {
  bench.onCheckpoint = (point) => {
    if (point === 'journal.begin') throw new Sqlite.SqliteError('database is locked', 'SQLITE_BUSY')
  }
}

function relieve(bench: TestHub): void {
  bench.onCheckpoint = () => {}
}

test('a full disk stops sales, and orders in progress continue when there is space again', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.queue(1, { 4: 3 })
  bench.runUntil(() => bench.phase(1) === 'preparing')
  fill(bench)
  bench.run(5 * MINUTE)
  expect(bench.alive).toBe(true)
  expect(bench.core.health().accepting_orders).toBe(false)
  expect(bench.core.quietMs()).toBeLessThan(2 * MINUTE)
  expect(bench.core.unlockDoor('main', 5000)).toEqual({ ok: true })
  relieve(bench)
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
  bench.run(2 * MINUTE)
  expect(bench.core.health().accepting_orders).toBe(true)
  expect(new Set(bench.dispenses().map((act) => act.operation_id)).size).toBe(bench.dispenses().length)
  expect(bench.stockErrors()).toEqual([])
})

test('a result that finds no space is repeated by its controller, also after restarts of both, and is booked once', () => {
  const bench = TestHub.ready()
  bench.isChecked = false
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.queue(1, { 4: 3 }, { start_by: bench.core.cloudNow() + 60 * MINUTE })
  bench.runUntil(() => bench.dispenses().length === 1)
  fill(bench)
  bench.run(2 * MINUTE)
  bench.fault('brown_out', 'vending')
  bench.run(2 * MINUTE)
  bench.restart()
  bench.run(2 * MINUTE)
  expect([bench.alive, bench.dispenses().length]).toEqual([true, 1])
  expect(bench.entries('stock.dropped')).toEqual([])
  relieve(bench)
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 10 * MINUTE)).toBe(true)
  bench.run(5 * MINUTE)
  expect(bench.dispenses()).toHaveLength(3)
  expect(bench.entries('stock.dropped')).toHaveLength(3)
  expect([bench.stockErrors(), bench.core.unknownOperations()]).toEqual([[], []])
  expect(bench.core.health().accepting_orders).toBe(true)
})

test('a failed result that its controller repeats on a full disk is one failure: its device rests once', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('jam_without_motion', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  const tries = (): unknown =>
    bench.journal.prepare("SELECT count(*) FROM operations WHERE device = 'cabinet-1'").pluck().get()
  expect(bench.runUntil(() => tries() === 1)).toBe(true)
  fill(bench)
  bench.run(30_000)
  relieve(bench)
  bench.room.faults.clear(fault)
  expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
})

test('I1: on a full disk an operation that cannot be journaled does not move, and its caller gets the error', () => {
  const bench = TestHub.ready()
  fill(bench)
  const before = bench.motions().length
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  bench.run(MINUTE)
  expect(results).toMatchObject([{ outcome: 'refused' }])
  expect(bench.motions()).toHaveLength(before)
  expect(bench.core.restock({ cabinet: 2, shelf: 1, row: 2 }, 1)).toEqual({
    ok: false,
    reason: 'unavailable',
  })
})

test('a hub starts on a full disk, connects to its controllers, and applies messages of the cloud', () => {
  const bench = TestHub.ready()
  fill(bench)
  bench.restart()
  bench.core.setCloudClock(bench.clock.now() - 5000, { passing: false })
  bench.run(5 * MINUTE)
  expect(bench.alive).toBe(true)
  expect(bench.core.orders()).toEqual([])
  expect(bench.core.health().bins).toMatchObject([{ status: 'healthy' }, { status: 'healthy' }])
  relieve(bench)
  bench.run(2 * MINUTE)
  bench.queue(1, { 4: 1 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
})

test('a hub that starts on a full disk confirms a new release only after it has stored something, and a confirmed one at once', () => {
  const bench = TestHub.ready()
  fill(bench)
  bench.firmwareOutcomes.length = 0
  bench.rollout = 'first'
  bench.restart()
  bench.run(30 * MINUTE)
  expect([bench.alive, bench.firmwareOutcomes]).toEqual([true, []])
  relieve(bench)
  bench.run(2 * MINUTE)
  expect(bench.firmwareOutcomes).toEqual(['done'])
  fill(bench)
  bench.firmwareOutcomes.length = 0
  bench.restart()
  bench.run(2 * MINUTE)
  expect(bench.firmwareOutcomes).toEqual(['done'])
})

test('I1: a controller counts as not connected if its report finds no space, and its evidence is awaited', () => {
  const bench = TestHub.ready()
  bench.room.power('off', 'vending')
  bench.run(5000)
  bench.restart()
  bench.run(5000)
  // Refused as long as a cabinet with possible evidence is missing.
  expect(bench.core.restartLedger('fork', 'ahead')).toBe(false)
  fill(bench)
  expect(() => bench.core.controllerEvents.onUp('vending', identityOf(bench))).toThrow('the disk is full')
  relieve(bench)
  expect(bench.core.restartLedger('fork', 'ahead')).toBe(false)
})

test.each([0, 60_000])(
  'a reconnect command without space for its outcome ends when there is space (after %s ms), and is answered once',
  (ms) => {
    const bench = TestHub.ready()
    if (ms > 0) bench.room.power('off', 'bins')
    bench.run(5000)
    const { results } = bench.command({ name: 'reconnect_bin', bin: 1 })
    fill(bench)
    bench.run(30_000)
    expect(results).toEqual([])
    relieve(bench)
    bench.run(ms + 10_000)
    expect(results).toMatchObject([{ outcome: ms > 0 ? 'failed' : 'executed' }])
    bench.run(60_000)
    expect(results).toHaveLength(1)
  },
)

test('a cycle command without space is refused, and is not continued when there is space', () => {
  const bench = TestHub.ready()
  fill(bench)
  const before = bench.motions().length
  const { results } = bench.command({ name: 'cycle_bin', bin: 1, cycles: 3 })
  bench.run(MINUTE)
  expect(results).toMatchObject([{ outcome: 'refused' }])
  relieve(bench)
  bench.run(5 * MINUTE)
  expect(bench.motions()).toHaveLength(before)
})

test('a controller that is lost while another program locks the journal is offline at once, and an alarm when the journal is free', () => {
  const bench = TestHub.ready()
  bench.isChecked = false
  bench.run(2000)
  lock(bench)
  bench.fault('silent_port', 'bins')
  bench.run(12_000)
  expect(bench.core.health().bins).toMatchObject([{ status: 'offline' }, { status: 'offline' }])
  relieve(bench)
  bench.run(10 * MINUTE)
  expect(bench.core.health().bins).toMatchObject([{ status: 'offline' }, { status: 'offline' }])
  expect(bench.core.alarms()).toMatchObject([{ code: 'controller_silent', subject: 'controller bins' }])
})

test('an order waits for a controller that was lost while another program locked the journal', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  lock(bench)
  bench.fault('silent_port', 'vending', { for_ms: 60_000 })
  bench.run(12_000)
  expectFewCommands(bench)
  bench.queue(1, { 4: 3 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
  expect([bench.alive, bench.dispenses().length, bench.stockErrors()]).toEqual([true, 3, []])
})

test('a controller that counts as connected without its line gets one command, and the others after its return', () => {
  const bench = TestHub.ready()
  bench.isChecked = false
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.fault('silent_port', 'vending', { for_ms: 60_000 })
  bench.run(12_000)
  const memories = bench.journal.prepare<[string], string>('SELECT memory_id FROM controllers WHERE id = ?')
  bench.core.controllerEvents.onUp('vending', {
    ...identityOf(bench),
    memoryId: memories.pluck().get('vending')!,
    lastOperation: null,
  })
  expectFewCommands(bench)
  bench.queue(1, { 4: 3 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
  expect([bench.alive, bench.dispenses().length, bench.stockErrors()]).toEqual([true, 3, []])
})

test.each(['stays open', 'is closed before there is space'])(
  'a door that is forced open on a full disk and %s is an alarm when there is space',
  (how) => {
    const bench = TestHub.ready()
    bench.run(5000)
    fill(bench)
    bench.fault('door_forced', 'main')
    bench.run(5000)
    if (how !== 'stays open') bench.room.act({ action: 'close_door', target: 'main' })
    bench.run(10_000)
    expect(bench.entries('alarm')).toEqual([])
    relieve(bench)
    bench.run(MINUTE)
    const raised = { code: 'door_forced', subject: 'door main', raised: true }
    const alarms = how === 'stays open' ? [raised] : [raised, { ...raised, raised: false }]
    expect(bench.entries('alarm').filter(({ code }) => code === 'door_forced')).toMatchObject(alarms)
  },
)

test('a door command without space for its outcome is answered once when there is space', () => {
  const bench = TestHub.ready()
  bench.run(5000)
  bench.onCheckpoint = (point) => {
    if (point === 'core.after-unlock') fill(bench)
  }
  const { results } = bench.command({ name: 'open_main_door' })
  bench.run(MINUTE)
  expect(results).toEqual([])
  relieve(bench)
  bench.run(MINUTE)
  expect(results).toMatchObject([{ outcome: 'executed' }])
  expect(bench.journal.prepare('SELECT id FROM commands WHERE outcome IS NULL').all()).toEqual([])
})

test.each(['arrives while another program locks the journal', 'never arrives'])(
  'a controller sells although its answer about its firmware %s',
  (how) => {
    const bench = new TestHub(1, new Map([['vending', 2], ['bins', 2]])) // prettier-ignore
    bench.isChecked = false
    bench.images = [imageOf(makeImage({ build: 2 }))]
    bench.begin()
    bench.apply(bench.snapshot())
    bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
    bench.run(5000)
    let lockedUntil = 0
    if (how === 'never arrives') bench.core.controllerEvents.onAnswered = () => {}
    bench.onCheckpoint = (point) => {
      const now = bench.clock.monotonic()
      if (point === 'core.after-firmware-FWQ' && how !== 'never arrives') lockedUntil = now + 1000
      if (point === 'journal.begin' && now < lockedUntil)
        throw new Sqlite.SqliteError('database is locked', 'SQLITE_BUSY')
    }
    bench.fault('silent_port', 'vending', { for_ms: 12_000 })
    bench.run(MINUTE)
    relieve(bench)
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
  },
)

describe.each([
  ['on a full disk', fill],
  ['while another program locks the journal', lock],
])('the reports of devices %s', (_, fail) => {
  test('a fridge that becomes warm is shown with its temperature, and is shut off when the storage works, even if it is cold again', () => {
    const bench = TestHub.ready()
    bench.isChecked = false
    bench.run(5 * MINUTE)
    // The alarm of the open door must be written, so that every event fails.
    bench.core.unlockDoor('main', 10_000)
    bench.room.act({ action: 'open_door', target: 'main' })
    fail(bench)
    const fault = bench.fault('warm_fridge', 'fridge-1')
    bench.run(50 * MINUTE)
    expect(bench.core.readings()[0]!.celsius).toBeGreaterThan(8)
    bench.room.faults.clear(fault)
    bench.run(30 * MINUTE)
    expect(bench.core.readings()[0]!.celsius).toBeLessThan(8)
    relieve(bench)
    bench.run(MINUTE)
    expect(bench.core.health().fridges[0]).toMatchObject({ shutoff: true })
    expect(bench.core.confirmFridge(1)).toEqual({ ok: true })
    bench.run(MINUTE)
    expect(bench.core.health().fridges[0]).toMatchObject({ shutoff: false })
  })

  test('an order does not start by a report of its bin that is older than the last one', () => {
    const bench = TestHub.ready()
    bench.isChecked = false
    bench.apply({ kind: 'config', config: { ...config, disabled_bins: [2] } })
    bench.command({ name: 'open_bin', bin: 1 })
    bench.run(5000)
    bench.queue(1, { 4: 1 })
    bench.run(5000)
    fail(bench)
    bench.room.act({ action: 'close_door', target: 'bin-1' })
    bench.run(5000)
    bench.fault('door_forced', 'bin-1')
    bench.run(1000)
    bench.room.act({ action: 'put_items', target: 'bin-1' })
    bench.run(MINUTE)
    relieve(bench)
    bench.run(MINUTE)
    expect(bench.dispenses()).toEqual([])
  })

  test('a report that settles a motion, or that shows mixed-up lines, is stored when the storage works', () => {
    const bench = TestHub.ready()
    bench.isChecked = false
    const events = { ...bench.core.controllerEvents }
    bench.core.controllerEvents.onResult = () => {}
    bench.command({ name: 'open_bin', bin: 1 })
    bench.run(500)
    const operationId = bench.journal.prepare<[], string>('SELECT id FROM operations').pluck().get()!
    events.onResult('bins', { operationId, state: 'forgotten', why: undefined, moved: true, drops: 0, ms: 0 })
    expect(bench.core.unknownOperations()).toHaveLength(1)
    fail(bench)
    bench.run(MINUTE)
    bench.core.controllerEvents.onDevice('cold', { device: 'bin-1', door: 'closed' })
    bench.run(MINUTE)
    expect(bench.core.health().bins[0]).toMatchObject({ door: 'open' })
    relieve(bench)
    bench.run(MINUTE)
    expect(bench.core.unknownOperations()).toEqual([])
    expect(bench.core.alarms()).toMatchObject([{ code: 'controller_foreign', subject: 'controller cold' }])
  })
})

/** More commands than an order can need: the same step follows itself without end. */
function expectFewCommands(bench: TestHub): void {
  let commands = 0
  bench.onCheckpoint = (point) => {
    if (point === 'core.before-perform' && ++commands > 50) throw new Crash('more than 50 commands')
  }
}

/** The identity of this hub's own controller of the vending rows, with the memory of another board. */
function identityOf(bench: TestHub) {
  const store = JSON.parse(
    bench.journal.prepare<[], string>("SELECT value FROM meta WHERE key = 'store_id'").pluck().get()!,
  ) as string
  return {
    bootId: '0'.repeat(8),
    memoryId: '1'.repeat(8),
    lastOperation: uuid(99),
    protocol: 3,
    stored: 1,
    firmware: 'test',
    owner: { hub: bench.hardware.hubId, ctl: 'vending', store },
  }
}

test('a start on a full disk is noted once there is space: it counts as a crash, and ends the commands of the former process', () => {
  const bench = TestHub.ready()
  const { id } = bench.command({ name: 'reconnect_bin', bin: 1 })
  const { restarts } = bench.core.life()
  fill(bench)
  bench.restart()
  const reconnect = bench.command({ name: 'reconnect_bin', bin: 2 })
  bench.run(2 * MINUTE)
  expect(bench.core.life().restarts).toBe(restarts)
  relieve(bench)
  bench.run(2 * MINUTE)
  expect(bench.core.life().restarts).toBe(restarts + 1)
  expect(bench.entries('command.finished')).toMatchObject([{ command_id: id, outcome: 'unknown' }])
  expect(reconnect.results).toMatchObject([{ outcome: 'refused' }])
})
