import { beforeEach, expect, test, vi } from 'vitest'
import { createInbox, type Inbox } from '../../../edge/journal/inbox.ts'
import type { OrderWorld } from '../../../edge/core/orders/order-view.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

/** Applies these entries as the first of the cloud's stream. */
function received(bench: TestHub, bodies: readonly CloudEntry[]): Inbox {
  const random = { bytes: (n: number) => new Uint8Array(n), fraction: () => 0 }
  const inbox = createInbox(bench.store, { clock: bench.clock, random }, silentLog)
  const epoch = 'e'.repeat(32)
  inbox.takeUp(epoch)
  const entries = bodies.map((body, index) => ({ tag: index + 1, body }))
  inbox.receive({ epoch, first: 1, previousTag: 0, oldest: 1, entries }, (body, leaveOut) =>
    bench.core.applyCloudEntry(body, leaveOut),
  )
  return inbox
}

/** The decision that order 13 always causes. */
let want: 'circle' | 'nonsense' | undefined

vi.mock(import('../../../edge/core/orders/order-step.ts'), async (original) => {
  const real = await original()
  return {
    ...real,
    ordersStep(world: OrderWorld) {
      if (want === undefined || !world.orders.some(({ id }) => id === uuid(13))) return real.ordersStep(world)
      return want === 'circle'
        ? ({ kind: 'hold', orderId: uuid(13), bin: 2 } as const)
        : // The tables have no such bin.
          ({ kind: 'hold', orderId: uuid(13), bin: {} as number } as const)
    },
  }
})

beforeEach(() => void (want = undefined))

test.each(['circle', 'nonsense'] as const)(
  'I8: an order on which decisions fail (%s) fails, and the next order is served',
  (how) => {
    const bench = TestHub.ready()
    want = how
    bench.queue(13, { 4: 1 })
    bench.queue(14, { 1: 1 })
    expect(bench.runUntil(() => bench.phase(14) === 'ready', 60_000)).toBe(true)
    expect(bench.entries('order.failed')).toMatchObject([{ order_id: uuid(13), reason: 'undecided' }])
    bench.restart()
    bench.run(5000)
    expect(bench.alive).toBe(true)
    expect(bench.dispenses()).toHaveLength(1)
  },
)

test('I8: an order with a repeated line becomes a dead letter, and later orders are served', () => {
  const bench = TestHub.ready()
  const [line] = bench.order(1, { 4: 1 }).lines
  const twice = { ...bench.order(1, { 4: 1 }), lines: [line!, line!] }
  const inbox = received(
    bench,
    [twice, bench.order(2, { 4: 1 })].map((order) => ({ kind: 'order.queued', order })),
  )
  expect(inbox.position().cursor).toBe(2)
  expect(inbox.deadLetters(10)).toMatchObject([
    { seq: 1, error: expect.stringContaining('names a line twice') as string },
  ])
  expect(bench.phase(1)).toBeUndefined()
  expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
})

test('I8: an order with more units than any hub holds becomes a dead letter before a row is written', () => {
  const bench = TestHub.ready()
  const inbox = received(bench, [
    { kind: 'order.queued', order: bench.order(1, { 4: 600, 1: 600 }) },
    { kind: 'order.queued', order: bench.order(2, { 4: 1 }) },
  ])
  expect(inbox.deadLetters(10)).toMatchObject([
    { seq: 1, error: expect.stringContaining('1200 units') as string },
  ])
  expect(bench.journal.prepare('SELECT count(*) FROM orders').pluck().get()).toBe(1)
  expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
})

test.each([10 ** 15, -1])(
  'I8: an order with a note too long for a command (line %s) becomes a dead letter, and the next order is served',
  (line_id) => {
    const bench = TestHub.ready()
    const order = bench.order(1, { 4: 1 })
    const inbox = received(bench, [
      { kind: 'order.queued', order: { ...order, lines: [{ ...order.lines[0]!, line_id }] } },
      { kind: 'order.queued', order: bench.order(2, { 4: 1 }) },
    ])
    expect(inbox.deadLetters(10)).toMatchObject([
      { seq: 1, error: expect.stringContaining('line') as string },
    ])
    expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
  },
)

test.each(['new', 'live'] as const)(
  'I8: an invalid order of a snapshot becomes a dead letter, and a hub with a store that is %s applies the rest',
  (store) => {
    const bench = store === 'live' ? TestHub.ready() : new TestHub()
    if (store === 'new') bench.begin()
    const [line] = bench.order(1, { 4: 1 }).lines
    const orders = [{ ...bench.order(1, { 4: 1 }), lines: [line!, line!] }, bench.order(2, { 4: 1 })].map(
      (order) => ({ order, status: OrderStatus.QUEUED, lines: [] }),
    )
    const inbox = received(bench, [bench.snapshot({ orders, config: { ...config, disabled_bins: [2] } })])
    expect(inbox.deadLetters(10)).toMatchObject([
      { seq: 1, error: expect.stringContaining('names a line twice') as string },
    ])
    expect(JSON.parse(inbox.deadLetters(1)[0]!.body)).toMatchObject({
      kind: 'order.queued',
      order: { order_id: uuid(1) },
    })
    bench.run(5000)
    expect(bench.core.health().bins[1]).toMatchObject({ status: 'maintenance' })
    expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
    expect(bench.phase(1)).toBeUndefined()
  },
)
