import { expect, test } from 'vitest'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { simulatedHardware } from '../../simulation/hardware.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/** The small hub with a controller of its own for each cabinet. */
const twoVending = HardwareDescription.parse({
  ...simulatedHardware,
  controllers: simulatedHardware.controllers.flatMap((one) =>
    one.id === 'vending'
      ? one.devices.map((device) => {
          const name = `vending-${device.number}`
          return { ...one, id: name, port: name, devices: [device] }
        })
      : [one],
  ),
})

/** The customer asks for the order's goods. Returns whether a bin opened. */
function opensFor(bench: TestHub, order: number, bins: number[]): boolean {
  const { results } = bench.command({ name: 'open_delivery', order_id: uuid(order), bins })
  bench.run(30_000)
  return results.some(({ outcome }) => outcome === 'executed')
}

test('a recovering order keeps its bin, so an order that becomes ready before it gets another bin', () => {
  const bench = new TestHub(1, undefined, twoVending)
  bench.begin()
  const begun = bench.snapshot() as Snapshot
  bench.apply(begun)
  bench.run(2000)
  const order = bench.order(1, { 3: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.entries('stock.dropped').length === 1)
  const [drop] = bench.entries('stock.dropped')
  // The card is replaced, a technician empties the bin, and one of the cabinets stays silent.
  bench.kill()
  bench.run(20_000)
  bench.fault('door_forced', 'bin-1')
  bench.room.act({ action: 'take_items', target: 'bin-1' })
  bench.room.act({ action: 'close_door', target: 'bin-1' })
  bench.fault('silent_port', 'vending-2')
  bench.restartOn()
  bench.run(5000)
  const lines = [{ line_id: 10, wanted: 2, dropped: 1, bins: [1] }]
  bench.apply({
    ...begun,
    stock: begun.stock.map((row) => (row.product_id === 3 ? { ...row, quantity: row.quantity - 1 } : row)),
    known_operations: [drop!.operation_id],
    orders: [{ order, status: OrderStatus.PREPARING, lines }],
  })
  bench.run(130_000)
  bench.queue(2, { 3: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready', 120_000)).toBe(true)
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 25 * 60_000)).toBe(true)
  expect(bench.entries('order.ready')).toMatchObject([
    { order_id: uuid(2), bins: [2] },
    { order_id: uuid(1), bins: [1], lines: [{ dropped: 2, doubtful: 0 }] },
  ])
  expect(opensFor(bench, 2, [2])).toBe(true)
  expect(opensFor(bench, 1, [2])).toBe(false)
})

test('units of a recovered order in a bin of a newer order are doubtful, and the newer order keeps its bin', () => {
  const bench = TestHub.ready()
  const order = bench.order(2, { 4: 1 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.phase(2) === 'ready')
  const known = bench.entries('stock.dropped').map(({ operation_id }) => operation_id)
  bench.restartOn()
  bench.run(5000)
  const older = bench.order(1, { 5: 1 }, { hub_epoch: order.hub_epoch })
  bench.apply(
    bench.snapshot({
      known_operations: known,
      orders: [
        {
          order: older,
          status: OrderStatus.PREPARING,
          lines: [{ line_id: 10, wanted: 1, dropped: 1, bins: [1] }],
        },
        {
          order,
          status: OrderStatus.READY,
          lines: [{ line_id: 20, wanted: 1, dropped: 1, bins: [1] }],
        },
      ],
    }),
  )
  bench.run(5000)
  expect(bench.entries('order.failed')).toMatchObject([
    { order_id: uuid(1), lines: [{ dropped: 0, doubtful: 1, bins: [] }] },
  ])
  expect(opensFor(bench, 2, [1])).toBe(true)
})

test('units of a recovered order in a bin that the hub does not have any more are doubtful', () => {
  const bench = TestHub.ready()
  const order = bench.order(1, { 4: 1 }, { hub_epoch: 'f'.repeat(32) })
  const lines = [{ line_id: 10, wanted: 1, dropped: 1, bins: [7] }]
  bench.apply(bench.snapshot({ orders: [{ order, status: OrderStatus.PREPARING, lines }] }))
  bench.run(60_000)
  expect(bench.entries('order.ready')).toEqual([])
  expect(bench.entries('order.failed')).toMatchObject([{ lines: [{ dropped: 0, doubtful: 1, bins: [] }] }])
})

test('a unit of a recovered order that falls late into a bin of another order stays doubtful', () => {
  const bench = TestHub.ready()
  bench.fault('late_drop', 'row 2/1/2')
  const order = bench.order(1, { 4: 1, 5: 1 })
  const newer = bench.order(2, { 6: 1 })
  bench.apply({ kind: 'order.queued', order })
  expect(bench.runUntil(() => bench.core.unknownOperations().length === 1)).toBe(true)
  bench.restartOn()
  bench.run(1000)
  bench.apply(
    bench.snapshot({
      orders: [
        {
          order,
          status: OrderStatus.PREPARING,
          lines: [
            { line_id: 10, wanted: 1, dropped: 0, bins: [] },
            { line_id: 11, wanted: 1, dropped: 1, bins: [2] },
          ],
        },
        {
          order: newer,
          status: OrderStatus.READY,
          lines: [{ line_id: 20, wanted: 1, dropped: 1, bins: [1] }],
        },
      ],
    }),
  )
  expect(bench.core.unknownOperations()).toHaveLength(1)
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 120_000)).toBe(true)
  expect(bench.core.unknownOperations()).toEqual([])
  expect(bench.entries('order.ready')).toMatchObject([
    {
      bins: [2],
      lines: [
        { dropped: 0, doubtful: 1, bins: [] },
        { dropped: 1, bins: [2] },
      ],
    },
  ])
})
