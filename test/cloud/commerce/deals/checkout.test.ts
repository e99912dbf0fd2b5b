import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { applyReward } from '../../../../cloud/commerce/deals/preview-cart.ts'
import { deleteDeal, updateDeal } from '../../../../cloud/commerce/deals/write-deals.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { orderHistory } from '../../../../cloud/commerce/orders/order-list.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { drop, openShop, type Shop } from '../../../world/shop.ts'
import { sendEvent } from '../../support/webhooks.ts'
import { addDeal, redemptionsOf, type Wish } from './support/shop-deals.ts'

const MINUTE = 60_000
const threeForTwo: Wish = {
  name: 'Three for two',
  triggers: [{ type: 'QUANTITY', quantity: 2, product_id: 1 }],
  rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 1 }],
}
const tenPercent: Wish = {
  name: 'Ten percent',
  rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10 }],
}

const visa = (shop: Shop, userId: number, orderId: number) =>
  pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
const statusesOf = async (shop: Shop) => (await redemptionsOf(shop)).map(({ status }) => status)

onEachDatabase('orders with deals', (open) => {
  test('a cart shows the prices that the payment will freeze: nets after deals, tax on the nets, and their sums', async () => {
    const shop = await openShop(await open())
    const dealId = await addDeal(shop, threeForTwo)
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 3, 2: 1 })
    const read = () => shop.view(orderId)
    const cart = await read()
    const expected = {
      total_price_original: 949,
      total_price_discounted: 679,
      discount_total: 270,
      tax_total: 56,
      total: 735,
      deals: [{ deal_id: dealId, name: 'Three for two', savings: 250 }],
      items: [
        { price: 250, line_total: 500 },
        { price: 179, line_total: 179 },
      ],
    }
    expect(cart).toMatchObject(expected)
    expect(await redemptionsOf(shop)).toEqual([])
    const paid = await visa(shop, userId, orderId)
    expect(paid).toMatchObject({ status: 'succeeded', amount: 735 })
    expect(await shop.items(orderId)).toMatchObject([
      { unit_price: 250, net: 500, tax: 41 },
      { unit_price: 179, net: 179, tax: 15 },
    ])
    expect(await redemptionsOf(shop)).toMatchObject([
      { deal_id: dealId, order_id: orderId, user_id: userId, discount_amount: 250, status: 'completed' },
    ])
    // Frozen prices do not change with the deal.
    await updateDeal(shop.context, dealId, { name: 'Renamed', is_deal_active: false }, 'owner')
    await deleteDeal(shop.context, { remove: () => Promise.resolve() }, dealId, 'owner')
    expect(await read()).toMatchObject(expected)
    expect(await redemptionsOf(shop)).toHaveLength(1)
    const history = await orderHistory(shop.context.db.kysely, {
      hubId: 1,
      ownerId: 1,
      limit: 1,
      cursor: null,
      search: null,
      searchNames: 10,
    })
    expect(history.read().data).toMatchObject([{ total_price_original: 949, total_price_discounted: 679 }])
  })

  test('a cart without deals, or outside of their time, has none', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, { ...tenPercent, is_deal_active: false })
    await addDeal(shop, { ...tenPercent, start: '2199-01-01' })
    await addDeal(shop, { ...tenPercent, end: '2000-01-01' })
    const order = await shop.paidOrder({ 1: 1 })
    expect(order).toMatchObject({ total_price_discounted: 250, deals: '[]' })
  })

  test('units that did not drop are refunded with their share of the frozen net, whichever unit was free', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, threeForTwo)
    const order = await shop.paidOrder({ 1: 3 })
    const [item] = await shop.items(order.id)
    expect([order.total, item!.net, item!.tax]).toEqual([541, 500, 41])
    await shop.report({ kind: 'order.preparing', order_id: order.id, bins: [1] })
    await shop.report(drop(item!, 1, 4), drop(item!, 2, 3))
    await shop.report({
      kind: 'order.ready',
      order_id: order.id,
      bins: [1],
      lines: [{ line_id: item!.id, dropped: 2, doubtful: 0, bins: [1] }],
    })
    await shop.work.drain()
    // A third of 541, rounded down; later shares add the rounding loss.
    expect(await shop.refunds(order.id)).toMatchObject([{ amount: 180, quantity: 1, status: 'succeeded' }])
    expect(await statusesOf(shop)).toEqual(['completed'])
  })

  test('an order that a deal makes free is paid without a processor and dispensed', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, { rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 1 }] })
    const order = await shop.paidOrder({ 1: 1 })
    expect(order).toMatchObject({ total: 0, payment_status: 'completed', processing_status: S.QUEUED })
    expect(await shop.payments(order.id)).toMatchObject([{ processor: 'none', amount: 0 }])
    expect(await statusesOf(shop)).toEqual(['completed'])
    expect((await shop.outbox()).map(({ kind }) => kind)).toEqual(['order.queued'])
  })

  test('a declined card releases the use of a deal, and the next attempt has the deal', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, { ...tenPercent, constraints: [{ type: 'MAXUSES', value: '1' }] })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 2 })
    await expect(
      pay(shop.services, { userId, orderId, method: 'pm_card_chargeDeclined' }),
    ).rejects.toMatchObject({ code: 'card_declined' })
    expect(await shop.order(orderId)).toMatchObject({ processing_status: S.NEW, deals: null })
    expect(await statusesOf(shop)).toEqual(['released'])
    await visa(shop, userId, orderId)
    expect(await shop.order(orderId)).toMatchObject({ total_price_discounted: 450 })
    expect(await statusesOf(shop)).toEqual(['released', 'completed'])
    const other = await shop.paidOrder({ 1: 2 })
    expect(other).toMatchObject({ total_price_discounted: 500, deals: '[]' })
  })

  test('an order that is cancelled before picking, or that never dropped anything, releases the use of its deal', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, { ...tenPercent, constraints: [{ type: 'MAXUSES', value: '2' }] })
    const first = await shop.paidOrder({ 1: 1 })
    shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 1 } as never)
    await deleteOrder(shop.services, { userId: first.user_id, orderId: first.id }, 'user')
    const second = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.failed', order_id: second.id, bins: [], lines: [], reason: 'fault' })
    expect(await statusesOf(shop)).toEqual(['released', 'released'])
    const third = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(third.id)
    await shop.report({ kind: 'order.preparing', order_id: third.id, bins: [1] }, drop(item!, 1, 4))
    await shop.report({
      kind: 'order.failed',
      order_id: third.id,
      bins: [1],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }],
      reason: 'fault',
    })
    expect(await statusesOf(shop)).toEqual(['released', 'released', 'completed'])
  })

  test('a deal can be limited per customer, and to first orders', async () => {
    const shop = await openShop(await open())
    await addDeal(shop, {
      rewards: [{ type: 'AMOUNT_OFF', discount_pct_or_price: 50 }],
      constraints: [{ type: 'MAXUSES_USER', value: '1' }],
    })
    await addDeal(shop, {
      triggers: [{ type: 'FIRST_ORDER' }],
      rewards: [{ type: 'AMOUNT_OFF', discount_pct_or_price: 90 }],
    })
    /** The prices of three orders, one after the other; none or all of their units drop. */
    async function visits(dropped: 0 | 1): Promise<(number | null)[]> {
      const userId = await shop.customer()
      const totals: (number | null)[] = []
      for (let visit = 0; visit < 3; visit += 1) {
        const { id: orderId } = await shop.cart(userId, { 1: 1 })
        await visa(shop, userId, orderId)
        const [item] = await shop.items(orderId)
        const lines = [{ line_id: item!.id, dropped, doubtful: 0, bins: [1] }]
        await shop.report(
          { kind: 'order.preparing', order_id: orderId, bins: [1] },
          { kind: 'order.ready', order_id: orderId, bins: [1], lines },
          { kind: 'order.completed', order_id: orderId },
        )
        await shop.work.drain()
        totals.push((await shop.order(orderId)).total_price_discounted)
      }
      return totals
    }
    expect(await visits(1)).toEqual([160, 200, 250])
    // A fully refunded order does not count.
    expect(await visits(0)).toEqual([160, 160, 160])
  })

  test.for([0, 100])('an order for %i cents without a drop was no first order', async (cents) => {
    const shop = await openShop(await open(), { taxMillipercent: 0 })
    await addDeal(shop, {
      triggers: [{ type: 'FIRST_ORDER' }],
      rewards: [{ type: 'FIXED_PRICE', discount_pct_or_price: cents }],
    })
    const userId = await shop.customer()
    const cost: (number | null)[] = []
    for (const end of ['order.cancelled', 'order.timed_out', 'order.queued'] as const) {
      const { id: orderId } = await shop.cart(userId, { 1: 1 })
      await visa(shop, userId, orderId)
      cost.push((await shop.order(orderId)).total)
      if (end === 'order.cancelled') await shop.report({ kind: end, order_id: orderId })
      if (end === 'order.timed_out') await shop.report({ kind: end, order_id: orderId, bins: [], lines: [] })
    }
    // The refunds are still pending.
    expect(cost).toEqual([cents, cents, cents])
  })

  test.for(['cart', 'expired'])(
    'a late payment of an order that is %s does not make it a first order',
    async (what) => {
      const shop = await openShop(await open(), { taxMillipercent: 0 })
      const dealId = await addDeal(shop, {
        triggers: [{ type: 'FIRST_ORDER' }],
        rewards: [{ type: 'FIXED_PRICE', discount_pct_or_price: 100 }],
      })
      const userId = await shop.customer()
      const { id: orderId } = await shop.cart(userId, { 1: 1 })
      const { payment_id: id } = await pay(shop.services, {
        userId,
        orderId,
        method: 'pm_card_authenticationRequired',
      })
      shop.clock.advance(15 * MINUTE)
      await shop.work.drain()
      if (what === 'expired') {
        shop.clock.advance(30 * MINUTE)
        await shop.work.drain()
      }
      expect((await shop.order(orderId)).processing_status).toBe(what === 'expired' ? S.EXPIRED : S.NEW)
      await sendEvent(shop, { id: 'evt_late', type: 'payment_intent.succeeded', object: { id } })
      // Its refund is still pending.
      expect((await shop.order(orderId)).payment_status).toBe('completed')
      const offered = await applyReward(
        shop.context,
        { id: 1, timezone: 'UTC' },
        {
          hub_id: 1,
          user_id: userId,
          device_uuid: null,
          deal_ids: [dealId],
          cart_items: [
            { product_id: 1, category_id: null, subcategory_id: null, quantity: 1, unit_price: 250 },
          ],
        },
      )
      expect(offered).toMatchObject({ deal_applied: true, total_savings: 150 })
    },
  )

  test('a payment uses the announcements for its customer, and releases them when it fails', async () => {
    const shop = await openShop(await open())
    const dealId = await addDeal(shop, { ...tenPercent, constraints: [{ type: 'MAXUSES', value: '1' }] })
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    const announce = (user_id: number | null) =>
      applyReward(
        shop.context,
        { id: 1, timezone: 'UTC' },
        {
          hub_id: 1,
          user_id,
          device_uuid: null,
          deal_ids: [dealId],
          cart_items: [
            { product_id: 1, category_id: null, subcategory_id: null, quantity: 2, unit_price: 250 },
          ],
        },
      )
    expect(await announce(ada)).toMatchObject({ deal_applied: true, total_savings: 50 })
    expect(await announce(eve)).toMatchObject({
      success: true,
      deal_applied: false,
      total_savings: 0,
      message: expect.stringContaining('used as often as it may be') as string,
    })
    const hers = await shop.cart(eve, { 1: 1 })
    await visa(shop, eve, hers.id)
    expect(await shop.order(hers.id)).toMatchObject({ total_price_discounted: 250 })

    const { id: orderId } = await shop.cart(ada, { 1: 1 })
    const declined = () =>
      pay(shop.services, { userId: ada, orderId, method: 'pm_card_chargeDeclined' }).catch(() => {})
    await declined()
    expect(await redemptionsOf(shop)).toMatchObject([{ user_id: ada, order_id: null, status: 'pending' }])
    await visa(shop, ada, orderId)
    expect(await redemptionsOf(shop)).toMatchObject([
      { user_id: ada, order_id: orderId, status: 'completed', discount_amount: 25 },
    ])
    expect(await shop.order(orderId)).toMatchObject({ total_price_discounted: 225 })
  })

  test('an announcement is released together with the order that used it', async () => {
    const shop = await openShop(await open())
    const dealId = await addDeal(shop, { ...tenPercent, constraints: [{ type: 'MAXUSES', value: '1' }] })
    const hub = { id: 1, timezone: 'UTC' }
    const item = { product_id: 1, category_id: null, subcategory_id: null, quantity: 2, unit_price: 250 }
    const announce = (user_id: number) =>
      applyReward(shop.context, hub, {
        hub_id: 1,
        user_id,
        device_uuid: null,
        deal_ids: [dealId],
        cart_items: [item],
      })
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    await announce(ada)
    const { id: orderId } = await shop.cart(ada, { 1: 1 })
    await pay(shop.services, { userId: ada, orderId, method: 'external' })
    expect(await redemptionsOf(shop)).toMatchObject([{ order_id: orderId, status: 'pending' }])
    await deleteOrder(shop.services, { userId: ada, orderId }, 'user')
    expect(await redemptionsOf(shop)).toMatchObject([{ status: 'released' }])
    expect(await announce(eve)).toMatchObject({ deal_applied: true })

    // An abandoned cart releases it too, before the announcement's own expiry.
    shop.context.settings.idleOrderMs = 60_000
    const hers = await shop.cart(eve, { 1: 1 })
    await pay(shop.services, { userId: eve, orderId: hers.id, method: 'pm_card_chargeDeclined' }).catch(
      () => {},
    )
    shop.clock.advance(61_000)
    await shop.work.drain()
    expect((await redemptionsOf(shop)).map(({ status }) => status)).toEqual(['released', 'released'])
  })

  test('an announced redemption is reserved for half an hour, and released then', async () => {
    const shop = await openShop(await open())
    const dealId = await addDeal(shop, { ...tenPercent, constraints: [{ type: 'MAXUSES', value: '1' }] })
    const announce = () =>
      applyReward(
        shop.context,
        { id: 1, timezone: 'UTC' },
        {
          hub_id: 1,
          user_id: null,
          device_uuid: null,
          deal_ids: [dealId],
          cart_items: [
            { product_id: 1, category_id: null, subcategory_id: null, quantity: 1, unit_price: 250 },
          ],
        },
      )
    expect(await announce()).toMatchObject({ deal_applied: true })
    shop.clock.advance(30 * MINUTE - 1)
    await shop.work.drain()
    expect(await announce()).toMatchObject({ deal_applied: false })
    expect(await statusesOf(shop)).toEqual(['pending'])
    shop.clock.advance(1)
    expect(await announce()).toMatchObject({ deal_applied: true })
    await shop.work.drain()
    expect(await statusesOf(shop)).toEqual(['released', 'pending'])
  })
})
