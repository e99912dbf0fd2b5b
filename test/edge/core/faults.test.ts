import { expect, test } from 'vitest'
import type { CommandBody } from '../../../protocol/model/hub-commands.ts'
import { uuid } from '../../support/uuid.ts'
import { Crash, TestHub } from '../../world/hub.ts'

const settled = (bench: TestHub, order = 1): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(order) ?? 'queued')

test('a jam without a motion is retried at another facing', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('jam_without_motion', 'cabinet-1')
  bench.queue(1, { 1: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(bench.dispenses().map((act) => act.device)).toEqual(['cabinet-2'])
  expect(bench.entries('stock.dropped')[0]).toMatchObject({ location: { cabinet: 2, shelf: 1, row: 1 } })
  expect(bench.stockErrors()).toEqual([])
  bench.room.faults.clear(fault)
})

test('a jam without another facing is retried once, and then the unit is short', () => {
  const bench = TestHub.ready()
  bench.fault('jam_without_motion', 'cabinet-1')
  bench.queue(1, { 3: 1, 4: 1 })
  bench.runUntil(() => settled(bench))
  const tries = bench.journal.prepare('SELECT state FROM operations WHERE product_id = 3').all()
  expect(tries).toEqual([{ state: 'nothing' }, { state: 'nothing' }])
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([
    { dropped: 0, doubtful: 0 },
    { dropped: 1, doubtful: 0 },
  ])
  expect(bench.entries('operation.unknown')).toEqual([])
})

test.each(['empty_turn', 'missed_drop'] as const)(
  'a unit without a sensed drop (%s) is unconfirmed, is never retried, and blocks its facing until a count',
  (type) => {
    const bench = TestHub.ready()
    const fault = bench.fault(type, 'cabinet-1')
    bench.queue(1, { 3: 2, 4: 1 })
    bench.runUntil(() => settled(bench))
    expect(bench.dispenses().filter((act) => act.device === 'cabinet-1')).toHaveLength(1)
    expect(bench.entries('order.ready')[0]?.lines).toMatchObject([
      { dropped: 0, doubtful: 1 },
      { dropped: 1, doubtful: 0 },
    ])
    const [unknown] = bench.entries('operation.unknown')
    expect(unknown).toMatchObject({ product_id: 3, order_id: uuid(1), reason: 'no_drop' })
    expect(bench.core.health().unknown_operations).toBe(1)
    bench.room.faults.clear(fault)
    const shelf = bench.shelf('1-1-3')
    expect(bench.core.count({ cabinet: 1, shelf: 1, row: 3 }, shelf)).toEqual({ ok: true })
    expect(bench.entries('operation.settled')).toMatchObject([
      { operation_id: unknown?.operation_id, by: 'count', happened: type === 'missed_drop' },
    ])
    expect(bench.stockErrors()).toEqual([])
    expect(bench.core.health().unknown_operations).toBe(0)
    bench.queue(2, { 3: 1 })
    bench.runUntil(() => settled(bench, 2))
    expect(bench.phase(2)).toBe('ready')
  },
)

test('a unit that did not reach its bin is dispensed from another row, and the first turn stays unknown', () => {
  const bench = TestHub.ready()
  bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { 1: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(bench.dispenses().map((act) => act.device)).toEqual(['cabinet-1', 'cabinet-2'])
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
  expect(bench.core.unknownOperations()).toMatchObject([{ location: { cabinet: 1, shelf: 1, row: 1 } }])
  expect(bench.room.state().bins.map(({ units }) => units)).toEqual([1, 0])
})

test('a unit that may be in its bin is not dispensed twice', () => {
  const bench = TestHub.ready()
  bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 1: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('failed')
  expect(bench.dispenses()).toHaveLength(1)
})

test('a unit that drops late, while another row is already dispensing it, is delivered once', () => {
  const bench = TestHub.ready()
  bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { 1: 1 })
  bench.runUntil(() => bench.dispenses().length === 1)
  const [first] = bench.dispenses()
  bench.runUntil(() => bench.core.orders()[0]?.lines[0]?.doubtful === 1)
  bench.runUntil(() => bench.core.orders()[0]?.lines[0]?.doubtful === 0)
  const [controller, device] = ['vending', 'cabinet-1']
  const late = {
    operationId: first!.operation_id!,
    state: 'failed',
    why: 'no_drop',
    moved: true,
    drops: 1,
    ms: 900,
  }
  bench.core.controllerEvents.onResult(controller, { ...late, device } as never)
  bench.runUntil(() => settled(bench))
  const delivered = bench.entries('stock.dropped').reduce((sum, entry) => sum + entry.delivered, 0)
  expect(delivered).toBe(1)
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
})

test('a person resolves an operation that evidence cannot resolve', () => {
  const bench = TestHub.ready()
  bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('failed')
  const [operation] = bench.core.unknownOperations()
  expect(bench.core.settle(operation!.operation_id, true)).toEqual({ ok: true })
  expect(bench.core.settle(operation!.operation_id, true)).toEqual({ ok: false, reason: 'not_unknown' })
  expect(bench.entries('stock.dropped')).toMatchObject([{ delta: -1, delivered: 0, order_id: uuid(1) }])
  expect(bench.stockErrors()).toEqual([])
})

test('a late drop resolves its operation automatically, and still reaches its customer', () => {
  const bench = TestHub.ready()
  bench.fault('late_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.run(60_000)
  expect(bench.phase(1)).toBe('ready')
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
  expect(bench.entries('operation.settled')).toMatchObject([{ by: 'sensor', happened: true }])
  expect(bench.entries('stock.dropped')).toMatchObject([{ delta: -1, delivered: 1 }])
  expect(bench.stockErrors()).toEqual([])
})

test('a late unit of an order in preparation belongs to this order', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('late_drop', 'cabinet-1')
  bench.queue(1, { 3: 1, 4: 4 }, {})
  bench.run(12_000)
  bench.room.faults.clear(fault)
  bench.runUntil(() => settled(bench))
  bench.run(30_000)
  const delivered = bench.entries('stock.dropped').reduce((sum, entry) => sum + entry.delivered, 0)
  const dropped = bench.entries('order.ready')[0]?.lines.reduce((sum, line) => sum + line.dropped, 0)
  expect(delivered).toBe(dropped)
  expect(bench.stockErrors()).toEqual([])
})

test('a double drop is booked completely and delivered once', () => {
  const bench = TestHub.ready()
  bench.fault('double_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.entries('stock.dropped')).toMatchObject([{ delta: -2, delivered: 1, quantity: 4 }])
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1 }])
  expect(bench.stockErrors()).toEqual([])
})

test('an order without a drop has failed, and its bin is free again', () => {
  const bench = TestHub.ready()
  bench.fault('jam_without_motion')
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => settled(bench))
  bench.run(5000)
  expect(bench.entries('order.failed')).toMatchObject([{ reason: 'nothing_dropped' }])
  expect(bench.core.health().bins.map((bin) => bin.order_id)).toEqual([null, null])
})

test('an order for an absent product fails at once and moves nothing', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 99: 1 })
  bench.run(10)
  expect(bench.entries('order.failed')).toMatchObject([
    { reason: 'out_of_stock', bins: [], lines: [{ dropped: 0, doubtful: 0 }] },
  ])
  expect(bench.motions()).toEqual([])
})

test.each(['memory_loss', 'brown_out'] as const)(
  'after a power failure during a dispense (%s) the unit is dropped or unconfirmed, and nothing moves twice',
  (type) => {
    for (let offset = 0; offset < 2400; offset += 150) {
      const bench = TestHub.ready(offset)
      bench.queue(1, { 4: 2, 3: 1 })
      const running = (): boolean =>
        bench.journal
          .prepare("SELECT 1 FROM operations WHERE state = 'open' AND action = 'dispense'")
          .get() !== undefined
      bench.runUntil(running)
      bench.run(offset)
      bench.fault(type, 'vending', { for_ms: 700 })
      bench.runUntil(() => settled(bench))
      bench.run(20_000)
      const operations = bench.dispenses().map((act) => act.operation_id)
      expect(new Set(operations).size).toBe(operations.length)
      const lines = bench.ledger().flatMap((entry) => ('lines' in entry ? entry.lines : []))
      const dropped = lines.reduce((sum, line) => sum + line.dropped, 0)
      const fallen = bench.dispenses().reduce((sum, act) => sum + Number(act.detail['fallen'] ?? 0), 0)
      const doubtful = lines.reduce((sum, line) => sum + line.doubtful, 0)
      expect(dropped).toBeLessThanOrEqual(fallen)
      expect(fallen).toBeLessThanOrEqual(dropped + doubtful)
      expect(bench.stockErrors().length).toBeLessThanOrEqual(bench.core.unknownOperations().length)
    }
  },
)

test('a motion that was never sent is known to have moved nothing, also after a time with a wrong clock', () => {
  const bench = TestHub.ready()
  bench.isChecked = false
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  const moves = (body: CommandBody): void => {
    const { results } = bench.command(body)
    expect(bench.runUntil(() => results.length > 0, 60 * 60_000)).toBe(true)
    expect(results).toMatchObject([{ outcome: 'executed' }])
  }
  const fiftyYears = 50 * 365 * 24 * 3_600_000
  bench.clock.shiftWall(fiftyYears)
  moves({ name: 'open_bin', bin: 1 })
  moves({ name: 'close_bin', bin: 1 })
  bench.clock.shiftWall(-fiftyYears)
  // The controller's memory of 256 operations overwrites both motions.
  for (let round = 0; round < 14; round += 1) moves({ name: 'cycle_bin', bin: 1, cycles: 10 })
  bench.onCheckpoint = (point) => {
    if (point === 'core.before-perform') throw new Crash('power')
  }
  const { id } = bench.command({ name: 'open_bin', bin: 1 })
  bench.onCheckpoint = () => {}
  bench.begin()
  bench.run(60_000)
  expect(bench.entries('operation.unknown')).toEqual([])
  const ends = bench.entries('command.finished').filter(({ command_id }) => command_id === id)
  expect(ends).toMatchObject([{ outcome: 'refused', reason: 'offline' }])
})

test('a bin with a stuck lift is faulty and raises an alarm, but its units are handed out', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.entries('stock.dropped').length > 0)
  const fault = bench.fault('jam', 'bin-1')
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(bench.entries('alarm')).toMatchObject([{ code: 'bin_fault', subject: 'bin 1', raised: true }])
  expect(bench.core.health().bins[0]).toMatchObject({ status: 'fault', fault_code: 'raise_lift:jam' })
  bench.room.faults.clear(fault)
  const { results } = bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.runUntil(() => results.length > 0)
  expect(results[0]).toMatchObject({ outcome: 'executed' })
})

test('a door that hits a hand opens, waits, and closes in the end', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 }, { open_when_ready: true })
  bench.runUntil(() => bench.phase(1) === 'collecting')
  const fault = bench.fault('obstructed_door', 'bin-1')
  bench.run(1500)
  bench.takeAll()
  bench.run(20_000)
  expect(bench.motions().filter((act) => act.action === 'close_door').length).toBeGreaterThan(1)
  expect(bench.core.health().bins[0]?.status).toBe('healthy')
  bench.room.faults.clear(fault)
  expect(bench.runUntil(() => bench.phase(1) === 'completed', 60_000)).toBe(true)
})

test('bouncing sensors change nothing', () => {
  const bench = TestHub.ready()
  bench.fault('sensor_bounce')
  bench.queue(1, { 1: 2, 4: 2 }, { open_when_ready: true })
  bench.runUntil(() => bench.phase(1) === 'collecting')
  bench.run(2000)
  bench.takeAll()
  expect(bench.runUntil(() => bench.phase(1) === 'completed', 60_000)).toBe(true)
  bench.run(20_000)
  expect(bench.dispenses()).toHaveLength(4)
  expect(bench.core.health().bins[0]).toMatchObject({ order_id: null, lift: 'down', door: 'closed' })
  expect(bench.stockErrors()).toEqual([])
})

test('lost and damaged lines and silence delay an order, and double nothing', () => {
  const bench = TestHub.ready()
  bench.fault('corrupted_lines', 'vending', { probability: 0.2, for_ms: 60_000 })
  bench.fault('lost_replies', 'bins', { probability: 0.4, for_ms: 60_000 })
  bench.queue(1, { 1: 2, 4: 2 })
  bench.run(3000)
  bench.fault('silent_port', 'vending', { for_ms: 8000 })
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(bench.dispenses()).toHaveLength(4)
  expect(bench.stockErrors()).toEqual([])
})
