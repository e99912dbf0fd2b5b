import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import type { BinRoom } from '../../../../cloud/commerce/orders/bin-room.ts'
import {
  estimateIn,
  hubPace,
  placeIn,
  type QueuedUnits,
  queueEstimate,
  TYPICAL_UNIT_MS,
} from '../../../../cloud/commerce/orders/queue-position.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'

const NOW = 1_000_000
const queued = (id: number, units: number, queued_at = id): QueuedUnits => ({
  id,
  processing_status: S.QUEUED,
  reserved_bin: null,
  queued_at,
  preparing_at: null,
  units,
})
const inHand = (id: number, units: number, sinceMs: number): QueuedUnits => ({
  ...queued(id, units),
  processing_status: S.PREPARING,
  preparing_at: NOW - sinceMs,
})
const emptyBins = (empty: number): BinRoom => ({
  capacities: [3, 3, 3, 3],
  empty,
  claimable: [],
  free: empty,
})

interface Expected {
  position: number | null
  ahead: number
  seconds: number | null
}

test.each<[string, QueuedUnits[], number, number, Expected]>([
  ['alone: the time of its own units', [queued(1, 3)], 1, 4, { position: 1, ahead: 0, seconds: 30 }],
  [
    'behind another order, with a bin for each: in parallel',
    [queued(1, 3), queued(2, 1)],
    2,
    2,
    { position: 2, ahead: 1, seconds: 10 },
  ],
  [
    'behind another order that takes the last bin: unknown',
    [queued(1, 3), queued(2, 1)],
    2,
    1,
    { position: 2, ahead: 1, seconds: null },
  ],
  ['next, with every bin taken: unknown', [queued(1, 1)], 1, 0, { position: 1, ahead: 0, seconds: null }],
  [
    'behind an order that fills two bins: after both',
    [queued(1, 4), queued(2, 1)],
    2,
    2,
    { position: 2, ahead: 1, seconds: null },
  ],
  [
    'with a reserved bin: independent of the others',
    [queued(1, 1), { ...queued(2, 2), reserved_bin: 4 }],
    2,
    1,
    { position: 2, ahead: 1, seconds: 20 },
  ],
  [
    'in the sequence of queueing, not of ids',
    [queued(1, 3, 9), queued(2, 1, 5)],
    2,
    4,
    { position: 1, ahead: 0, seconds: 10 },
  ],
  [
    'queued simultaneously: the lower id first',
    [queued(2, 1, 5), queued(1, 3, 5)],
    2,
    4,
    { position: 2, ahead: 1, seconds: 10 },
  ],
  [
    'behind an order in progress, which has its bin: not after it',
    [queued(1, 1), inHand(2, 5, 20_000)],
    1,
    1,
    { position: 2, ahead: 1, seconds: 10 },
  ],
  [
    'in progress: the remaining time',
    [queued(1, 9), inHand(2, 5, 20_000)],
    2,
    0,
    { position: null, ahead: 0, seconds: 30 },
  ],
  [
    'in progress for longer than expected: one unit more',
    [inHand(2, 2, 900_000)],
    2,
    0,
    { position: null, ahead: 0, seconds: 10 },
  ],
  ['not there', [queued(1, 9)], 7, 4, { position: null, ahead: 0, seconds: null }],
])('the queue position of an order is right %s', (_, queue, orderId, empty, { seconds, ...place }) => {
  expect(placeIn(queue, orderId)).toEqual(place)
  expect(estimateIn(queue, orderId, { unitMs: 10_000, now: NOW, bins: emptyBins(empty) })).toBe(seconds)
})

/** The hub prepares an order with full drops within `tookMs` by its own clock. */
async function prepare(shop: Shop, orderId: number, tookMs: number, units: number): Promise<void> {
  const items = await shop.items(orderId)
  await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
  shop.clock.advance(tookMs)
  const lines = droppedLines(items, { units })
  await shop.report({ kind: 'order.ready', order_id: orderId, bins: [1], lines })
  await shop.hear()
}

onEachDatabase('the wait at a hub', (open) => {
  const products = [{ price: 100, quantity: 100 }]

  test('the wait is estimated from the durations of the hub’s last orders, by the hub’s clock', async () => {
    const shop = await openShop(await open(), { products })
    const q = shop.context.db.kysely
    expect(await hubPace(q, 1)).toBe(TYPICAL_UNIT_MS)
    await prepare(shop, (await shop.paidOrder({ 1: 2 })).id, 12_000, 2)
    expect(await hubPace(q, 1)).toBe(6000)
    await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 4000, 1)
    expect(await hubPace(q, 1)).toBe(5000)
    const first = await shop.paidOrder({ 1: 2 })
    const second = await shop.paidOrder({ 1: 3 })
    expect(await queueEstimate(q, shop.context, second)).toEqual({
      position: 2,
      ahead: 1,
      estimatedWaitSeconds: 15,
    })
    await shop.report({ kind: 'order.preparing', order_id: first.id, bins: [1] })
    shop.clock.advance(4000)
    expect(await queueEstimate(q, shop.context, second)).toEqual({
      position: 2,
      ahead: 1,
      estimatedWaitSeconds: 15,
    })
    expect(await queueEstimate(q, shop.context, await shop.order(first.id))).toEqual({
      position: null,
      ahead: 0,
      estimatedWaitSeconds: 6,
    })
    shop.clock.advance(shop.context.settings.onlineWithinMs)
    expect(await queueEstimate(q, shop.context, second)).toMatchObject({ estimatedWaitSeconds: null })
  })

  test('the wait follows a hub that has become faster, and no single order changes it much', async () => {
    const shop = await openShop(await open(), { products })
    const q = shop.context.db.kysely
    for (let count = 0; count < 12; count += 1)
      await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 10_000, 1)
    expect(await hubPace(q, 1)).toBeCloseTo(10_000)
    await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 2000, 1)
    expect(await hubPace(q, 1)).toBeCloseTo(9200)
    for (let count = 0; count < 30; count += 1)
      await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 2000, 1)
    expect(await hubPace(q, 1)).toBeLessThan(2500)
  })

  test('the wait ignores orders without a drop, and orders that were held up', async () => {
    const shop = await openShop(await open(), { products })
    const q = shop.context.db.kysely
    await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 5000, 0)
    await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 11 * 60_000, 1)
    await prepare(shop, (await shop.paidOrder({ 1: 1 })).id, 0, 1)
    expect(await hubPace(q, 1)).toBe(TYPICAL_UNIT_MS)
  })
})
