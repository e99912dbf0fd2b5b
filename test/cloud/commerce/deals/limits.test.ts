import { expect, test } from 'vitest'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { applyStockEntries } from '../../../../cloud/commerce/catalogue/apply-stock.ts'
import { applyReward } from '../../../../cloud/commerce/deals/preview-cart.ts'
import { createOrder, setItem } from '../../../../cloud/commerce/orders/cart.ts'
import { lockOrderAgain, type OrderRow } from '../../../../cloud/commerce/orders/order-rows.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { endUndelivered } from '../../../../cloud/commerce/refunds/undelivered.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { reportBins } from '../../../world/seeds.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { healthy } from '../../../world/health.ts'
import { addDeal, redemptionsOf } from './support/shop-deals.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const plenty = {
  bins: 9,
  products: [{ price: 250, quantity: 1000 }],
}
const hub = { id: 1, timezone: 'UTC' }
const off = (cents: number) => [{ type: 'AMOUNT_OFF', discount_pct_or_price: cents } as const]

const request = (dealIds: number[], userId: number | null, deviceUuid: string | null = null) => ({
  hub_id: 1,
  user_id: userId,
  device_uuid: deviceUuid,
  deal_ids: dealIds,
  cart_items: [{ product_id: 1, category_id: null, subcategory_id: null, quantity: 1, unit_price: 250 }],
})

const payOnce = async (shop: Shop, method = 'pm_card_visa'): Promise<OrderRow> => {
  const userId = await shop.customer()
  const { id: orderId } = await shop.cart(userId, { 1: 1 })
  await pay(shop.services, { userId, orderId, method }).catch(() => {})
  return shop.order(orderId)
}

/**
 * Pays a customer's orders simultaneously; payments that an unpaid order prevents follow one after the other.
 */
const payAll = async (shop: Shop, userId: number, orderIds: readonly number[]): Promise<void> => {
  const payOne = (orderId: number) => pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
  const answers = await Promise.allSettled(orderIds.map(payOne))
  for (const [index, answer] of answers.entries()) {
    if (answer.status === 'fulfilled') continue
    expect(answer.reason).toMatchObject({ code: 'order_state_conflict' })
    await payOne(orderIds[index]!)
  }
}

/** The hub dispenses all paid orders, and the customers empty the bins. */
const serveAll = async (shop: Shop): Promise<void> => {
  const queued = await shop.context.db.kysely
    .selectFrom('orders')
    .select('id')
    .where('processing_status', '=', OrderStatus.QUEUED)
    .execute()
  for (const { id: order_id } of queued) {
    const lines = droppedLines(await shop.items(order_id))
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines })
    await shop.report({ kind: 'order.completed', order_id })
  }
}

onEachDatabase('limits of deals under concurrency', (open) => {
  test('thirty simultaneous customers get a deal only as often as its limit allows', async () => {
    const shop = await openShop(await open(), plenty)
    const dealId = await addDeal(shop, {
      rewards: off(50),
      constraints: [{ type: 'MAXUSES', value: '7' }],
    })
    const totals: (number | null)[] = []
    // The hub has nine bins: other customers pay after the first ones have collected.
    while (totals.length < 30) {
      const orders = await Promise.all(Array.from({ length: 30 - totals.length }, () => payOnce(shop)))
      const paid = orders.filter(({ payment_status }) => payment_status === 'completed')
      expect(paid.length).toBe(Math.min(9, orders.length))
      totals.push(...paid.map((order) => order.total_price_discounted))
      await serveAll(shop)
    }
    expect(totals.filter((total) => total === 200)).toHaveLength(7)
    expect(totals.filter((total) => total === 250)).toHaveLength(23)
    const redemptions = await redemptionsOf(shop)
    expect(redemptions.map(({ deal_id, status }) => [deal_id, status])).toEqual(
      Array.from({ length: 7 }, () => [dealId, 'completed']),
    )
  })

  test('uses that failed payments release go to other customers, and never exceed the limit', async () => {
    const shop = await openShop(await open(), plenty)
    await addDeal(shop, { rewards: off(50), constraints: [{ type: 'MAXUSES', value: '3' }] })
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          payOnce(shop, index % 2 === 0 ? 'pm_card_chargeDeclined' : 'pm_card_visa'),
        ),
      )
      await serveAll(shop)
    }
    const count = async (wanted: string) =>
      (await redemptionsOf(shop)).filter(({ status }) => status === wanted).length
    expect(await count('completed')).toBeLessThanOrEqual(3)
    expect(await count('pending')).toBe(0)
    for (let visit = 0; visit < 4; visit += 1) await payOnce(shop)
    expect(await count('completed')).toBe(3)
  })

  test('simultaneous orders and announcements keep the limits of several deals', async () => {
    const shop = await openShop(await open(), plenty)
    const stack = { type: 'STACKABLE', value: '1' } as const
    const ids = [
      await addDeal(shop, {
        rewards: [{ type: 'AMOUNT_OFF', product_id: 1, quantity: 1, discount_pct_or_price: 50 }],
        constraints: [stack, { type: 'MAXUSES', value: '4' }],
      }),
      await addDeal(shop, { rewards: off(60), constraints: [stack, { type: 'MAXUSES', value: '6' }] }),
    ]
    await Promise.all(
      Array.from({ length: 24 }, async (_, index) =>
        index % 2 === 0
          ? payOnce(shop)
          : applyReward(shop.context, hub, request(index % 4 === 1 ? ids : ids.toReversed(), null)),
      ),
    )
    const redemptions = await redemptionsOf(shop)
    const uses = ids.map((id) => redemptions.filter(({ deal_id }) => deal_id === id).length)
    expect(uses).toEqual([4, 6])
  })

  test('simultaneous orders of one customer, or from one device, keep the limits', async () => {
    const shop = await openShop(await open(), plenty)
    const userId = await shop.customer()
    const personal = await addDeal(shop, {
      rewards: off(50),
      constraints: [{ type: 'MAXUSES_USER', value: '2' }],
    })
    const ofDevice = await addDeal(shop, {
      rewards: off(40),
      constraints: [{ type: 'MAXUSES_DEVICE', value: '1' }],
    })
    const results = await Promise.all([
      ...Array.from({ length: 8 }, () => applyReward(shop.context, hub, request([personal], userId))),
      ...Array.from({ length: 8 }, () => applyReward(shop.context, hub, request([ofDevice], null, 'phone'))),
      applyReward(shop.context, hub, request([ofDevice], null, 'tablet')),
    ])
    expect(results.filter(({ deal_applied }) => deal_applied)).toHaveLength(2 + 1 + 1)
    expect(await applyReward(shop.context, hub, request([personal, ofDevice], null))).toMatchObject({
      deal_applied: false,
    })
  })

  test('a customer has one first order, even if two hubs are paid simultaneously', async () => {
    const shop = await openShop(await open(), plenty)
    const q = shop.context.db.kysely
    const { id: _, ...first } = await q.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    await q
      .insertInto('hubs')
      .values({ ...first, name: 'Second hub' })
      .execute()
    const session = await q.selectFrom('hub_sessions').selectAll().executeTakeFirstOrThrow()
    await q
      .insertInto('hub_sessions')
      .values({ ...session, hub_id: 2 })
      .execute()
    const { id: __, ...product } = await q.selectFrom('products').selectAll().executeTakeFirstOrThrow()
    await q
      .insertInto('products')
      .values({ ...product, hub_id: 2 })
      .execute()
    const { product_id: ___, ...facing } = await q.selectFrom('facings').selectAll().executeTakeFirstOrThrow()
    const second = await q
      .selectFrom('products')
      .select('id')
      .where('hub_id', '=', 2)
      .executeTakeFirstOrThrow()
    await q
      .insertInto('facings')
      .values({ ...facing, hub_id: 2, product_id: second.id })
      .execute()
    await reportBins(shop.context.db, 2, healthy.bins, shop.clock.now())
    for (const hub_id of [1, 2])
      await addDeal(shop, { hub_id, triggers: [{ type: 'FIRST_ORDER' }], rewards: off(50) })
    const userId = await shop.customer()
    const carts = await Promise.all(
      [1, 2].map(async (hubId) => {
        const { id: orderId } = await createOrder(shop.context, { userId, hubId })
        await setItem(shop.context, { userId, orderId }, { productId: hubId, quantity: 1 })
        return orderId
      }),
    )
    await payAll(shop, userId, carts)
    const totals = await Promise.all(carts.map(async (id) => (await shop.order(id)).total_price_discounted))
    expect(totals.toSorted((a, b) => a! - b!)).toEqual([200, 250])
  })

  test('an order does not release its use if a drop is reported during its end', async () => {
    const shop = await openShop(await open(), plenty)
    const { context, clock } = shop
    const { db } = context
    await addDeal(shop, { rewards: off(50), constraints: [{ type: 'MAXUSES', value: '1' }] })
    const { id, uuid } = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    const [item] = await shop.items(id)
    const fell = {
      kind: 'stock.dropped',
      at: clock.now(),
      product_id: 1,
      location: { cabinet: 1, shelf: 1, row: 1 },
      delta: -1,
      quantity: 999,
      operation_id: '00000000-0000-7000-8000-000000000001',
      order_id: uuid,
      line_id: item!.id,
      delivered: 1,
      bin: 1,
    } as const
    const end = () =>
      db.transact(async (tx) =>
        endUndelivered(tx, context, await lockOrderAgain(tx, id), 'preparation_timeout', {
          failure_reason: 'hub_silent',
        }),
      )
    const { ending } = await db.transact(async (tx) => {
      await applyStockEntries(tx, context, 1, [fell])
      const ended = end()
      await lockWaits(db)
      return { ending: ended }
    })
    await ending
    expect((await shop.items(id))[0]).toMatchObject({ qty_dropped: 1, reserved: 0 })
    expect((await redemptionsOf(shop)).map(({ status }) => status)).toEqual(['completed'])
  })
})
