import { expect, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

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
  const store = JSON.parse(
    bench.journal.prepare<[], string>("SELECT value FROM meta WHERE key = 'store_id'").pluck().get()!,
  ) as string
  const identity = {
    bootId: '0'.repeat(8),
    memoryId: '1'.repeat(8),
    lastOperation: uuid(99),
    protocol: 3,
    stored: 1,
    firmware: 'test',
    owner: { hub: bench.hardware.hubId, ctl: 'vending', store },
  }
  expect(() => bench.core.controllerEvents.onUp('vending', identity)).toThrow('the disk is full')
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
