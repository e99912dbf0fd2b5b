import { expect, test } from 'vitest'
import type { OperationOutcome } from '../../../edge/hardware/controller-events.ts'
import { TestHub } from '../../world/hub.ts'

const settled = (bench: TestHub, order = 1): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(order) ?? 'queued')

const alarmsOf = (bench: TestHub, code: string) =>
  bench.entries('alarm').filter((alarm) => alarm.code === code && alarm.raised)

/** The row of the first order turns, and nothing falls. The flickering drop sensor of its cabinet counts `drops` falls. */
function flickering(product: number, drops: number): TestHub {
  const bench = TestHub.ready()
  bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { [product]: 1 })
  expect(bench.runUntil(() => bench.dispenses().length > 0)).toBe(true)
  report(bench, drops)
  bench.runUntil(() => settled(bench))
  return bench
}

function report(bench: TestHub, drops: number): void {
  const operationId = bench.dispenses()[0]!.operation_id!
  const outcome: OperationOutcome = {
    operationId,
    state: 'done',
    moved: true,
    drops,
    ms: 900,
    why: undefined,
  }
  bench.core.controllerEvents.onResult('vending', outcome)
}

test.each([
  [25, 'which held at most 6'],
  [3, 'and bin 1 is empty'],
])(
  'a sensor that counts %i falls without one is not believed: the order is refunded, no stock changes, and an alarm has the numbers',
  (drops, why) => {
    const bench = flickering(3, drops)
    expect(bench.entries('order.failed')).toMatchObject([
      { reason: 'nothing_dropped', lines: [{ dropped: 0, doubtful: 1 }] },
    ])
    expect(bench.entries('stock.dropped')).toEqual([])
    expect(bench.stockErrors()).toEqual([])
    expect(bench.dispenses()).toHaveLength(1)
    expect(bench.core.stock().find(({ product_id }) => product_id === 3)).toMatchObject({
      blocked: 'too_many_drops',
    })
    const [alarm] = alarmsOf(bench, 'unexpected_drop')
    expect(alarm).toMatchObject({ subject: 'cabinet 1' })
    expect(alarm!.detail).toContain(`${drops} units seen to fall from row 1/1/3, ${why}`)
    bench.core.count({ cabinet: 1, shelf: 1, row: 3 }, bench.shelf('1-1-3'))
    expect(bench.entries('operation.settled')).toMatchObject([{ by: 'count', happened: false }])
    expect(bench.core.alarms()).toEqual([])
  },
)

test('the unit that a flickering sensor counted too often is dispensed from another row once the bin is seen empty', () => {
  const bench = flickering(1, 25)
  expect(bench.phase(1)).toBe('ready')
  expect(bench.dispenses().map(({ device }) => device)).toEqual(['cabinet-1', 'cabinet-2'])
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
  expect(bench.stockErrors()).toEqual([])
})

test('a repeated report of a count that is not believed changes nothing', () => {
  const bench = flickering(3, 25)
  const before = bench.ledger().length
  report(bench, 25)
  bench.restart()
  bench.run(10_000)
  report(bench, 25)
  expect(
    bench
      .ledger()
      .slice(before)
      .filter(({ kind }) => kind !== 'alarm' && kind !== 'state'),
  ).toEqual([])
  expect(bench.stockErrors()).toEqual([])
})

test('a unit that falls from a row without stock by the books makes no stock negative, and is an alarm', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 1, shelf: 1, row: 3 }
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  bench.core.count(location, 0)
  // A second unit of the turn falls late.
  const operationId = bench.dispenses()[0]!.operation_id!
  bench.core.controllerEvents.onDevice('vending', { device: 'cabinet-1', drop: 1, operationId })
  report(bench, 2)
  expect(bench.core.stock().find(({ product_id }) => product_id === 3)).toMatchObject({ quantity: 0 })
  expect(alarmsOf(bench, 'unexpected_drop')).toMatchObject([
    { detail: expect.stringMatching(/^1 fell from row 1\/1\/3, which held 0/) as string },
  ])
})

test('a technician’s test of a row that nobody has counted makes no stock negative, and is no alarm', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 1, shelf: 1, row: 3 }
  bench.core.count(location, 0)
  const { results } = bench.command({ name: 'test_dispense', location })
  bench.runUntil(() => results.length > 0)
  expect(results).toMatchObject([{ outcome: 'executed', data: { drops: 1 } }])
  expect(bench.core.stock().find(({ product_id }) => product_id === 3)).toMatchObject({ quantity: 0 })
  expect(alarmsOf(bench, 'unexpected_drop')).toEqual([])
})

test('a count in a controller’s memory that no row can hold makes no stock negative in a new journal', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  const snapshot = bench.snapshot()
  bench.restartOn()
  const { controllerEvents } = bench.core
  const onListed = controllerEvents.onListed.bind(controllerEvents)
  controllerEvents.onListed = (controller, operations) =>
    onListed(
      controller,
      operations.map((each) => (each.action === 'dispense' ? { ...each, drops: 25 } : each)),
    )
  bench.apply(snapshot)
  bench.run(20_000)
  expect(bench.core.stock().every(({ quantity }) => quantity >= 0)).toBe(true)
  expect(bench.core.unknownOperations()).toMatchObject([{ location: { cabinet: 1, shelf: 1, row: 3 } }])
  expect(alarmsOf(bench, 'unexpected_drop')).toHaveLength(1)
})

test.each([1, 3])(
  'two units that fell in one turn are believed if their bin reports them after the result (product %i)',
  (product) => {
    const bench = TestHub.ready()
    bench.fault('double_drop', 'cabinet-1')
    const { controllerEvents } = bench.core
    const onDevice = controllerEvents.onDevice.bind(controllerEvents)
    controllerEvents.onDevice = (controller, event) => {
      if (event.occupied === true) bench.clock.after(3000, () => onDevice(controller, event))
      else onDevice(controller, event)
    }
    bench.queue(1, { [product]: 1 })
    bench.runUntil(() => settled(bench))
    expect(bench.phase(1)).toBe('ready')
    expect(bench.dispenses()).toHaveLength(1)
    expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
    expect(bench.entries('stock.dropped')).toMatchObject([{ delta: -2, delivered: 1 }])
    expect(bench.stockErrors()).toEqual([])
    expect(bench.core.unknownOperations()).toEqual([])
    expect(bench.core.alarms()).toEqual([])
  },
)

test('a count that is not believed stays so if another unit falls into the bin', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { 3: 1, 2: 1 })
  bench.runUntil(() => bench.dispenses().length > 0)
  report(bench, 3)
  bench.room.faults.clear(fault)
  bench.runUntil(() => bench.dispenses().length > 1)
  bench.run(3000)
  report(bench, 3)
  bench.runUntil(() => settled(bench))
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([
    { dropped: 0, doubtful: 1 },
    { dropped: 1, doubtful: 0 },
  ])
  expect(bench.stockErrors()).toEqual([])
})
