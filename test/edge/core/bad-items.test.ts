import { beforeEach, expect, test, vi } from 'vitest'
import { createInbox } from '../../../edge/journal/inbox.ts'
import type { OrderWorld } from '../../../edge/core/orders/order-view.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { uuid } from '../../support/uuid.ts'
import { HubBench } from './hub-bench.ts'

/** What decisions want of order 13, whatever has been done about it. */
let want: 'circle' | 'nonsense' | undefined

vi.mock(import('../../../edge/core/orders/order-step.ts'), async (original) => {
  const real = await original()
  return {
    ...real,
    ordersStep(world: OrderWorld) {
      if (want === undefined || !world.orders.some(({ id }) => id === uuid(13))) return real.ordersStep(world)
      return want === 'circle'
        ? ({ kind: 'hold', orderId: uuid(13), bin: 2 } as const)
        : // The tables know no such bin.
          ({ kind: 'hold', orderId: uuid(13), bin: {} as number } as const)
    },
  }
})

beforeEach(() => void (want = undefined))

test.each(['circle', 'nonsense'] as const)(
  'I8: an order with which the decisions cannot go on (%s) fails, and the next one is served',
  (how) => {
    const bench = HubBench.ready()
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

test('I8: an order that names a line twice becomes a dead letter, and those behind it are served', () => {
  const bench = HubBench.ready()
  const { store, clock } = bench
  const inbox = createInbox(
    store,
    { clock, random: { bytes: (n) => new Uint8Array(n), fraction: () => 0 } },
    silentLog,
  )
  const epoch = 'e'.repeat(32)
  inbox.takeUp(epoch)
  const [line] = bench.order(1, { 4: 1 }).lines
  const twice = { ...bench.order(1, { 4: 1 }), lines: [line!, line!] }
  const entries = [twice, bench.order(2, { 4: 1 })].map((order, index) => ({
    tag: index + 1,
    body: { kind: 'order.queued', order },
  }))
  inbox.receive({ epoch, first: 1, previousTag: 0, oldest: 1, entries }, (body) =>
    bench.core.applyCloudEntry(body),
  )
  expect(inbox.position().cursor).toBe(2)
  expect(inbox.deadLetters(10)).toMatchObject([
    { seq: 1, error: expect.stringContaining('UNIQUE') as string },
  ])
  expect(bench.phase(1)).toBeUndefined()
  expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
})
