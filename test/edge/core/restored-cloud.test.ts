import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import type { HubEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { TestHub } from '../../world/hub.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/** The cloud's books of a shelf after these entries. */
function booksOf(begun: Snapshot, heard: readonly HubEntry[]): Snapshot {
  const shelves = new Map(begun.stock.map((shelf) => [locationKey(shelf.location), shelf]))
  const known = new Set<string>()
  for (const entry of heard) {
    if (entry.kind === 'snapshot')
      for (const shelf of entry.stock) shelves.set(locationKey(shelf.location), shelf)
    if (entry.kind !== 'stock.dropped' || known.has(entry.operation_id)) continue
    known.add(entry.operation_id)
    shelves.set(locationKey(entry.location), entry)
  }
  return { ...begun, stock: [...shelves.values()], known_operations: [...known] }
}

/** The cloud has acknowledged all entries, and the hub has deleted them. */
function acknowledgeAll(bench: TestHub): void {
  bench.outbox.forget('ledger', bench.outbox.position('ledger').last)
}

/** The hub's card dies, and a new one starts after the cloud has received no, some or all of the entries. */
function expectSoundForAnyReports(bench: TestHub, begun: Snapshot): void {
  const account = bench.ledger()
  for (let heard = 0; heard <= account.length; heard += 1) {
    bench.restartOn()
    bench.run(5000)
    bench.apply(booksOf(begun, account.slice(0, heard)))
    bench.run(5000)
    expect(bench.stockErrors(), `${heard} of ${account.length} were heard`).toEqual([])
  }
}

/** The customer of order 1 collects it from bin 1. */
function fetchOrder(bench: TestHub): void {
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(5000)
  bench.takeAll()
  expect(bench.runUntil(() => bench.phase(1) === 'completed')).toBe(true)
}

test('an order with a number that a restored cloud issued again is another order', () => {
  const bench = TestHub.ready()
  bench.queue(2, { 4: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready')).toBe(true)
  const again = { ...bench.order(2, { 5: 1 }), order_id: uuid(9002) }
  bench.apply({ kind: 'order.queued', order: again })
  const isReady = (): boolean =>
    bench.entries('order.ready').some(({ order_id }) => order_id === again.order_id)
  expect(bench.runUntil(isReady)).toBe(true)
  expect(bench.dispenses()).toHaveLength(2)
})

test('a cloud that lost acknowledged reports gets all drops and order states again', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 2 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  fetchOrder(bench)
  bench.queue(2, { 5: 1 })
  bench.runUntil(() => bench.phase(2) === 'ready')
  bench.queue(3, { 4: 1 }, { start_by: bench.core.cloudNow() - 1 })
  bench.run(1000)
  acknowledgeAll(bench)
  bench.core.restartLedger('the cloud was restored')
  expect(bench.ledger()).toMatchObject([
    { kind: 'stock.dropped', product_id: 4, delta: -1, quantity: 5, order_id: null },
    { kind: 'stock.dropped', product_id: 4, delta: -1, quantity: 4, order_id: null },
    { kind: 'stock.dropped', product_id: 5, delta: -1, quantity: expect.any(Number) as number },
    { kind: 'snapshot', unknown_operations: [] },
    { kind: 'order.ready', order_id: uuid(1), bins: [1], lines: [{ dropped: 2 }] },
    { kind: 'order.completed', order_id: uuid(1) },
    { kind: 'order.ready', order_id: uuid(2), lines: [{ dropped: 1 }] },
    { kind: 'order.timed_out', order_id: uuid(3), lines: [{ dropped: 0 }] },
  ])
})

test('units that a restored cloud has lost and removed by the hub’s report are not removed again by the hub’s next store', () => {
  const bench = TestHub.ready()
  const begun = bench.snapshot() as Snapshot
  bench.queue(1, { 4: 2 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  fetchOrder(bench)
  const { last } = bench.outbox.position('ledger')
  bench.queue(2, { 4: 1 })
  bench.runUntil(() => bench.phase(2) === 'ready')
  bench.outbox.forget('ledger', last)
  // A backup from before the orders is restored. Then the hub's card dies, and a part of its report was
  // received.
  bench.core.restartLedger('the cloud was restored')
  expectSoundForAnyReports(bench, begun)
})

test('a store that was new reports the cloud’s counts again to a cloud that was restored since', () => {
  const bench = TestHub.ready()
  const begun = bench.snapshot() as Snapshot
  bench.queue(1, { 4: 2 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  const told = bench.ledger()
  bench.restartOn()
  bench.run(5000)
  bench.apply(booksOf(begun, told))
  bench.run(5000)
  acknowledgeAll(bench)
  // A backup from before the order is restored; then the next card dies too.
  bench.core.restartLedger('the cloud was restored')
  expectSoundForAnyReports(bench, begun)
})

test('an order that a restored cloud regards as unfinished gets the controllers’ evidence from a newer store', () => {
  const bench = TestHub.ready()
  const begun = bench.snapshot() as Snapshot
  const order = bench.order(1, { 4: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.phase(1) === 'ready')
  fetchOrder(bench)
  const told = bench.ledger()
  bench.restartOn()
  bench.run(5000)
  bench.apply(booksOf(begun, told))
  bench.run(5000)
  // A backup from before its start is restored.
  const lines = [{ line_id: 10, wanted: 2, dropped: 0, bins: [] }]
  bench.apply({ ...begun, orders: [{ order, status: OrderStatus.QUEUED, lines }] })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  expect(bench.entries('order.ready')).toMatchObject([{ lines: [{ dropped: 2, doubtful: 0 }], bins: [1] }])
  expect(bench.core.unknownOperations()).toEqual([])
  expect(bench.dispenses()).toHaveLength(2)
  expect(bench.stockErrors()).toEqual([])
})

test('ended orders and old drops are not reported again', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.queue(2, { 4: 1 }, { start_by: bench.core.cloudNow() - 1 })
  bench.run(1000)
  for (const [table, column] of [
    ['orders', 'ended_at'],
    ['stock_ledger', 'at'],
  ])
    bench.rewrite(`UPDATE ${table} SET ${column} = ${column} - ?`, 49 * 3_600_000)
  acknowledgeAll(bench)
  bench.core.restartLedger('the cloud was restored')
  expect(bench.kinds()).toEqual(['snapshot', 'order.ready'])
})

test('an operation that is still unknown is reported again to a cloud that may have lost it', () => {
  const bench = TestHub.ready()
  bench.fault('missed_drop', 'cabinet-2')
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'failed')
  acknowledgeAll(bench)
  const [{ operation_id } = { operation_id: '' }] = bench.core.unknownOperations()
  bench.core.restartLedger('the cloud was restored')
  expect(bench.ledger()).toMatchObject([
    { kind: 'snapshot', unknown_operations: [operation_id] },
    { kind: 'operation.unknown', operation_id, order_id: uuid(1) },
    { kind: 'order.failed', order_id: uuid(1) },
  ])
})

test('unstarted orders that the snapshot does not list are cancelled', () => {
  const bench = TestHub.ready()
  for (const order of [1, 2, 3, 4]) bench.queue(order, { 4: 1 })
  expect([1, 2, 3, 4].map((order) => bench.phase(order))).toEqual([
    'preparing',
    'preparing',
    'queued',
    'queued',
  ])
  const lines = [{ line_id: 40, wanted: 1, dropped: 0, bins: [] }]
  bench.apply(bench.snapshot({ orders: [{ order: bench.order(4, { 4: 1 }), status: 20, lines }] }))
  expect(bench.entries('order.cancelled').map(({ order_id }) => order_id)).toEqual([uuid(3)])
})

test('a count that is in the books is confirmed again to a cloud that asks', () => {
  const bench = TestHub.ready()
  const count = {
    count_id: uuid(77),
    product_id: 4,
    location: null,
    quantity: 5,
    counted_at: bench.core.cloudNow(),
  }
  bench.apply({ kind: 'stock.count', count })
  acknowledgeAll(bench)
  bench.apply(bench.snapshot({ counts: [count] }))
  expect(bench.entries('stock.counted')).toMatchObject([{ count_id: uuid(77), delta: 0, quantity: 5 }])
})

test('units that were refunded before their start stay on the shelf', () => {
  const bench = TestHub.ready()
  bench.apply(
    { kind: 'order.queued', order: bench.order(1, { 4: 2, 5: 1 }) },
    { kind: 'order.reduce', order_id: uuid(1), lines: [{ line_id: 11, wanted: 0 }] },
    { kind: 'order.reduce', order_id: uuid(1), lines: [{ line_id: 10, wanted: 1 }] },
    { kind: 'order.reduce', order_id: uuid(1), lines: [{ line_id: 10, wanted: 1 }] },
  )
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1 }, { dropped: 0 }])
  expect(bench.dispenses()).toHaveLength(1)
  const { results } = bench.command({
    name: 'reduce_order',
    order_id: uuid(1),
    lines: [{ line_id: 10, wanted: 0 }],
  })
  expect(results).toMatchObject([{ outcome: 'executed' }])
  expect(bench.phase(1)).toBe('ready')
})

test('an order without remaining units is cancelled', () => {
  const bench = TestHub.ready()
  bench.apply(
    { kind: 'order.queued', order: bench.order(1, { 4: 2 }) },
    { kind: 'order.reduce', order_id: uuid(1), lines: [{ line_id: 10, wanted: 0 }] },
  )
  expect(bench.runUntil(() => bench.phase(1) === 'cancelled')).toBe(true)
  expect(bench.dispenses()).toEqual([])
})

test('an order that the cloud has ended is not dispensed further, although it has started', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 3 })
  bench.runUntil(() => bench.dispenses().length === 1)
  bench.apply({ kind: 'order.cancel', order_id: uuid(1) })
  bench.run(120_000)
  expect(bench.dispenses()).toHaveLength(1)
})
