import { describe, expect, test } from 'vitest'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import type { HubEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/**
 * The cloud's snapshot after it has received the entries `heard` of the hub's ledger, with orders in these
 * states.
 */
function snapshotAfter(bench: TestHub, heard: readonly HubEntry[], orders: Snapshot['orders']): CloudEntry {
  const base = bench.snapshot() as Snapshot
  const drops = heard.filter((entry) => entry.kind === 'stock.dropped')
  const stock = base.stock.map((row) => ({
    ...row,
    quantity: drops
      .filter((drop) => JSON.stringify(drop.location) === JSON.stringify(row.location))
      .reduce((sum, drop) => sum + drop.delta, row.quantity),
  }))
  return { ...base, stock, known_operations: drops.map((drop) => drop.operation_id), orders }
}

test('a hub with a new store counts the drops in its controllers’ memories, and dispenses none again', () => {
  const bench = TestHub.ready()
  const order = bench.order(1, { 1: 2, 4: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.dispenses().length === 2)
  bench.run(1200)
  // The cloud has received the first unit; the others are lost with the card.
  const [first] = bench.entries('stock.dropped')
  bench.restartOn()
  bench.run(5000)
  expect(bench.ledger()).toEqual([])
  expect(bench.core.health().accepting_orders).toBe(false)
  const lines = order.lines.map(({ line_id }) => ({
    line_id,
    wanted: 9,
    dropped: line_id === first!.line_id ? 1 : 0,
    bins: [1],
  }))
  bench.apply(snapshotAfter(bench, [first!], [{ order, status: OrderStatus.PREPARING, lines }]))
  bench.runUntil(() => bench.phase(1) === 'ready')
  expect(bench.kinds()[0]).toBe('snapshot')
  const fallen = bench.dispenses().reduce((sum, act) => sum + Number(act.detail['fallen'] ?? 0), 0)
  const [ready] = bench.entries('order.ready')
  expect(ready?.bins).toEqual([1])
  expect(ready?.lines.reduce((sum, line) => sum + line.dropped, 0)).toBe(fallen)
  expect(ready?.lines.reduce((sum, line) => sum + line.doubtful, 0)).toBe(4 - fallen)
  expect(bench.stockErrors()).toEqual([])
  bench.run(600_000)
  expect(bench.dispenses().length).toBe(fallen)
})

test('a hub with a new store reports the results of operations that the former store may have reported as unknown', () => {
  const bench = TestHub.ready()
  const order = bench.order(1, { 4: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const [first, second] = bench.entries('stock.dropped')
  bench.restartOn()
  // The cloud has received only the first unit.
  const lines = [{ line_id: order.lines[0]!.line_id, wanted: 9, dropped: 1, bins: [1] }]
  bench.apply(snapshotAfter(bench, [first!], [{ order, status: OrderStatus.PREPARING, lines }]))
  bench.runUntil(() => bench.phase(1) === 'ready')
  const told = bench.entries('operation.settled')
  expect(told).toContainEqual(
    expect.objectContaining({ operation_id: second!.operation_id, by: 'sensor', happened: true }),
  )
  expect(told.map(({ operation_id }) => operation_id)).not.toContain(first!.operation_id)
})

test('a hub with a new store finishes an order that waits for its customer', () => {
  const bench = TestHub.ready()
  const order = bench.order(1, { 4: 1 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const heard = bench.ledger()
  const lines = [{ line_id: 10, wanted: 9, dropped: 1, bins: [1] }]
  bench.restartOn()
  bench.apply(snapshotAfter(bench, heard, [{ order, status: OrderStatus.READY, lines }]))
  bench.run(5000)
  expect(bench.stockErrors()).toEqual([])
  expect(bench.entries('stock.dropped')).toEqual([])
  const { results } = bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.runUntil(() => results.length > 0)
  bench.run(1000)
  bench.takeAll()
  expect(bench.runUntil(() => bench.phase(1) === 'completed', 60_000)).toBe(true)
  expect(bench.dispenses()).toHaveLength(1)
})

test('a new store accepts a new order', () => {
  const bench = new TestHub()
  bench.begin()
  bench.run(1000)
  const order = bench.order(1, { 4: 1 })
  bench.apply(bench.snapshot({ orders: [{ order, status: OrderStatus.QUEUED, lines: [] }] }))
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
})

test('a store restored from a copy starts a new history, and doubles nothing', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  const copy = bench.copy()
  const [oldEpoch] = bench.outbox.knownEpochs()
  const order = bench.order(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const heard = bench.ledger()
  bench.restartOn(copy)
  bench.run(30_000)
  expect(bench.inboxResets).toBe(1)
  expect(bench.outbox.knownEpochs()).not.toContain(oldEpoch)
  expect(bench.ledger()).toEqual([])
  expect(bench.dispenses()).toHaveLength(1)
  const lines = [{ line_id: 10, wanted: 9, dropped: 0, bins: [] }]
  // The cloud has received nothing since the copy.
  bench.apply(snapshotAfter(bench, [], [{ order, status: OrderStatus.QUEUED, lines }]))
  bench.run(60_000)
  expect(heard.length).toBeGreaterThan(0)
  expect(bench.dispenses()).toHaveLength(1)
  expect(bench.phase(1)).toBe('ready')
  expect(bench.entries('stock.dropped')).toMatchObject([{ delta: -1, delivered: 1, order_id: uuid(1) }])
  expect(bench.stockErrors()).toEqual([])
})

test('a caller that waits for a command is answered when its store turns out to be a copy', () => {
  const bench = TestHub.ready()
  const copy = bench.copy()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.restartOn(copy)
  const { results, id } = bench.command({ name: 'reconnect_bin', bin: 1 })
  bench.run(120_000)
  expect(bench.inboxResets).toBe(1)
  expect(results).toMatchObject([{ command_id: id, outcome: 'unknown', reason: 'interrupted' }])
  expect(bench.kinds()).toEqual([])
})

test('an order that an earlier store may have started, without evidence, fails and is refunded', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 }, { hub_epoch: 'f'.repeat(32) })
  bench.run(10_000)
  expect(bench.entries('order.failed')).toMatchObject([
    { reason: 'hub_replaced', lines: [{ dropped: 0, doubtful: 1 }] },
  ])
  expect(bench.dispenses()).toEqual([])
})

test('unconfirmed units after a lost store and a lost memory are listed, blocked, and resolved by counts', () => {
  const bench = TestHub.ready()
  const order = bench.order(1, { 4: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.entries('stock.dropped').length === 1)
  bench.kill()
  bench.fault('memory_loss', 'vending')
  bench.run(3000)
  bench.restartOn()
  bench.run(3000)
  const lines = [{ line_id: 10, wanted: 9, dropped: 0, bins: [] }]
  bench.apply(snapshotAfter(bench, [], [{ order, status: OrderStatus.QUEUED, lines }]))
  bench.run(3000)
  expect(bench.phase(1)).toBe('failed')
  expect(bench.entries('order.failed')[0]?.lines).toMatchObject([{ dropped: 0, doubtful: 2 }])
  expect(bench.core.unknownOperations()).toHaveLength(2)
  expect(bench.core.stock().filter((facing) => facing.blocked)).toMatchObject([{ product_id: 4 }])
  bench.core.count({ cabinet: 2, shelf: 1, row: 2 }, bench.shelf('2-1-2'))
  expect(bench.core.unknownOperations()).toEqual([])
  expect(bench.entries('operation.settled').filter((entry) => entry.happened)).toHaveLength(
    6 - bench.shelf('2-1-2'),
  )
  expect(bench.stockErrors()).toEqual([])
})

test('after a restored copy, complete memories also prove which operations never happened', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const copy = bench.copy()
  const order = bench.order(2, { 4: 2 })
  bench.apply({ kind: 'order.queued', order })
  bench.runUntil(() => bench.dispenses().length === 2)
  bench.run(100)
  bench.restartOn(copy)
  bench.run(5000)
  const lines = [{ line_id: 20, wanted: 9, dropped: 0, bins: [] }]
  const known = snapshotAfter(bench, [], [{ order, status: OrderStatus.QUEUED, lines }])
  bench.apply(known)
  bench.runUntil(() => bench.phase(2) === 'ready')
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
  expect(bench.core.unknownOperations()).toEqual([])
})

test.each([
  { hub: 'a hub with a new store', isNew: true },
  { hub: 'a hub with a store of its own', isNew: false },
])(
  'a count of a row with another product now does not affect the rest of the snapshot at $hub',
  ({ isNew }) => {
    const bench = TestHub.ready()
    if (isNew) bench.restartOn()
    bench.run(5000)
    // A count of product 1, unconfirmed when the planogram changed.
    const outdated = {
      count_id: uuid(901),
      product_id: 1,
      location: { cabinet: 1, shelf: 1, row: 3 },
      quantity: 7,
      counted_at: bench.core.cloudNow(),
    }
    const other = { ...outdated, count_id: uuid(902), location: { cabinet: 1, shelf: 1, row: 1 } }
    bench.apply(bench.snapshot({ config: { ...config, disabled_bins: [2] }, counts: [outdated, other] }))
    bench.run(5000)
    expect(bench.core.health()).toMatchObject({ accepting_orders: true, bins: { 1: { enabled: false } } })
    expect(bench.stock()['1-1-1']).toBe(7)
  },
)

test('after its start the hub waits for every cabinet before any dispenses', () => {
  const bench = TestHub.ready()
  bench.kill()
  bench.room.power('off', 'vending')
  bench.begin()
  bench.queue(1, { 4: 1 })
  bench.run(60_000)
  expect(bench.phase(1)).toBe('queued')
  bench.room.power('on', 'vending')
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
})

test('a copy that connects to the cloud before its controllers reports no stock until they connect', () => {
  const bench = TestHub.ready()
  const copy = bench.copy()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.kill()
  for (const controller of ['bins', 'vending']) bench.room.power('off', controller)
  bench.restartOn(copy)
  bench.run(5000)
  const epochs = bench.outbox.knownEpochs().length
  const resets = bench.inboxResets
  expect(bench.core.restartLedger('test', 'ahead')).toBe(false)
  expect(bench.outbox.knownEpochs()).toHaveLength(epochs)
  for (const controller of ['bins', 'vending']) bench.room.power('on', controller)
  bench.run(5000)
  // The memories of its boards show that it is a copy: it restarts from the cloud.
  expect(bench.inboxResets).toBe(resets + 1)
})

test('a cloud that is ahead gets its new epoch when all cabinets are connected, or after the start-up grace', () => {
  const bench = TestHub.ready()
  expect(bench.core.restartLedger('test', 'ahead')).toBe(true)
  bench.kill()
  bench.room.power('off', 'vending')
  bench.begin()
  bench.run(5000)
  expect(bench.core.restartLedger('test', 'ahead')).toBe(false)
  bench.run(120_000)
  // No cabinet is connected: its stock would only be the cloud's.
  expect(bench.core.restartLedger('test', 'ahead')).toBe(true)
  expect(bench.entries('snapshot')).toEqual([])
  expect(bench.core.restartLedger('a cloud that was restored meanwhile')).toBe(true)
  expect(bench.entries('snapshot')).toEqual([])
  bench.kill()
  bench.begin()
  bench.run(5000)
  expect(bench.entries('snapshot')).toEqual([])
  bench.room.power('on', 'vending')
  bench.run(5000)
  expect(bench.entries('snapshot')).toHaveLength(1)
})

test('a copy of a new store, which took its stock from the cloud on a bench, does not report it later', () => {
  const bench = new TestHub()
  for (const controller of ['bins', 'vending']) bench.room.power('off', controller)
  bench.begin()
  bench.run(1000)
  bench.apply(bench.snapshot())
  expect(bench.kinds()[0]).toBe('snapshot')
  bench.run(120_000)
  // Meanwhile the board in the room has sold units, and the cloud follows that board.
  const others = bench.kinds().filter((kind) => kind !== 'snapshot')
  expect(bench.core.restartLedger('test', 'ahead')).toBe(true)
  expect(bench.kinds().slice(0, others.length)).toEqual(others)
  expect(bench.entries('snapshot')).toEqual([])
  bench.room.power('on', 'vending')
  bench.run(5000)
  expect(bench.entries('snapshot')).toHaveLength(1)
})

test('a cloud that is ahead gets its new epoch after the start-up grace if one of the cabinets is connected', () => {
  const bench = TestHub.ready()
  const { controllers } = bench.hardware
  const shelves = [{ shelf: 1, rows: 1, depth: 12 }]
  const devices = [{ kind: 'cabinet' as const, number: 3, shelves }]
  const silent = { id: 'silent', port: 'nowhere', baudRate: 115_200, devices }
  bench.kill()
  bench.hardware = { ...bench.hardware, controllers: [...controllers, silent] }
  bench.begin()
  bench.run(5000)
  expect(bench.core.restartLedger('test', 'ahead')).toBe(false)
  bench.run(120_000)
  const [before] = bench.entries('snapshot')
  expect(bench.core.restartLedger('test', 'ahead')).toBe(true)
  expect(bench.entries('snapshot')).toHaveLength(1)
  expect(bench.entries('snapshot')).not.toContainEqual(before)
})

test('a new epoch of the same store starts with the unacknowledged entries, then a snapshot and the orders', () => {
  const bench = TestHub.ready()
  bench.outbox.forget('ledger', bench.outbox.position('ledger').last)
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const before = bench.ledger()
  const epochs = bench.outbox.knownEpochs().length
  bench.core.restartLedger('test')
  expect(bench.outbox.knownEpochs()).toHaveLength(epochs + 1)
  expect(bench.ledger().slice(0, before.length)).toEqual(before)
  expect(bench.kinds().slice(before.length)).toEqual(['snapshot', 'order.ready'])
  expect(bench.entries('snapshot')).toHaveLength(1)
  expect(bench.entries('snapshot')[0]?.stock).toContainEqual({
    product_id: 4,
    location: { cabinet: 2, shelf: 1, row: 2 },
    quantity: 5,
  })
  bench.queue(2, { 4: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready')).toBe(true)
})

describe('alarms about a replaced journal', () => {
  const alarms = (bench: TestHub) =>
    bench
      .entries('alarm')
      .filter(({ subject }) => subject === 'hub')
      .map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

  test.each([
    ['a lost journal', 'the journal of this hub was lost', 'journal_lost', false],
    ['an older copy of the journal', 'the journal is an older copy', 'journal_restored', true],
  ] as const)(
    '%s is an alarm until everything known elsewhere is recovered',
    (_what, message, code, isCopy) => {
      const bench = TestHub.ready()
      bench.queue(1, { 4: 1 })
      const copy = isCopy ? bench.copy() : undefined
      bench.runUntil(() => bench.phase(1) === 'ready')
      bench.restartOn(copy)
      bench.run(5000)
      expect(bench.logged('warn')).toContainEqual(expect.stringContaining(message))
      bench.apply(bench.snapshot())
      bench.run(5000)
      expect(alarms(bench)).toEqual([`${code} hub true`, `${code} hub false`])
    },
  )

  test('a first start raises no alarm about the journal', () => {
    const bench = TestHub.ready()
    bench.restart()
    bench.run(5000)
    expect(alarms(bench)).toEqual([])
    expect(bench.logged('warn').filter((line) => line.includes('journal'))).toEqual([])
  })
})
