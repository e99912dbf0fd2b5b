import { expect, test } from 'vitest'
import { confirmClaim } from '../../support/confirm-claim.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { sandboxWork } from '../../../../cloud/commerce/processors/sandbox/sandbox.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { receiveWebhook } from '../../../../cloud/commerce/payments/webhook.ts'
import { ALL, WHOLE_HUB } from '../../../../cloud/commerce/analytics/sale.ts'
import { readTotals } from '../../../../cloud/commerce/analytics/totals.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { differences } from './support/check.ts'

const NOTHING = { orders: 0, units: 0, revenue: 0, cost: 0, customers: 0 }

/** The whole-time figures of the summaries; they must agree with a recount too. */
async function counted({ context }: Shop, productId = WHOLE_HUB) {
  expect(await differences(context.db)).toEqual([])
  return (await readTotals(context.db.kysely, { hubId: 1, ownerId: 1 }, [ALL], productId))(ALL)
}

/** Product 1 costs 250, product 2 199 less 10 %: 179. Each was bought for 100; tax is 8.25 %. */
onEachDatabase('the count of a sale', (open) => {
  test('a sale is counted at its payment, not before, with the frozen prices of its lines', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await shop.cart(userId, { 1: 2 })
    expect(await counted(shop)).toEqual(NOTHING)
    await shop.paidOrder({ 1: 2, 2: 1 })
    expect(await counted(shop)).toEqual({ orders: 1, units: 3, revenue: 679, cost: 300, customers: 1 })
    expect(await counted(shop, 2)).toMatchObject({ orders: 1, units: 1, revenue: 179, cost: 100 })
    await shop.context.db.kysely
      .updateTable('products')
      .set({ original_price: 999, purchase_price: 1 })
      .execute()
    expect(await counted(shop)).toMatchObject({ revenue: 679, cost: 300 })
  })

  test('a sale is counted once for any number of payment reports, and a declined card is not counted', async () => {
    const shop = await openShop(await open())
    await shop.paidOrder({ 1: 1 })
    shop.clock.advance(1000)
    const events = sandboxWork({
      context: shop.context,
      secret: 'whsec',
      async deliver(body, signature) {
        for (let time = 0; time < 3; time += 1) await receiveWebhook(shop.context, 'whsec', body, signature)
        return true
      },
    })
    await new WorkRunner(shop.context, events).drain()
    await expect(shop.paidOrder({ 1: 1 }, 'pm_card_chargeDeclined')).rejects.toThrow()
    expect(await counted(shop)).toMatchObject({ orders: 1, units: 1, revenue: 250, customers: 1 })
  })

  test('an integrator’s sale is counted at the integrator’s confirmation', async () => {
    const shop = await openShop(await open())
    const { reserved_bin } = await shop.paidOrder({ 2: 1 }, 'external')
    expect(await counted(shop)).toEqual(NOTHING)
    await confirmClaim(shop.context, { hubId: 1, bin: reserved_bin!, key: 'abcdefgh' })
    expect(await counted(shop)).toMatchObject({ orders: 1, units: 1, revenue: 179, cost: 100 })
  })

  test('automatic refunds reduce a sale: a unit that did not drop was not sold and cost nothing', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2, 2: 1 })
    const [first, second] = await shop.items(id)
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] } as never)
    await shop.report({
      kind: 'order.ready',
      order_id: id,
      bins: [1],
      lines: [
        { line_id: first!.id, dropped: 1, doubtful: 0, bins: [1] },
        { line_id: second!.id, dropped: 1, doubtful: 0, bins: [1] },
      ],
    } as never)
    expect(await counted(shop)).toMatchObject({ orders: 1, units: 2, revenue: 429, cost: 200, customers: 1 })
  })

  test('a free order is reduced in the same way: a unit that did not drop was not sold', async () => {
    const shop = await openShop(await open(), { products: [{ price: 1, markdown: 99, quantity: 20 }] })
    const [cancelled, timedOut, short] = [
      await shop.paidOrder({ 1: 2 }),
      await shop.paidOrder({ 1: 3 }),
      await shop.paidOrder({ 1: 4 }),
    ]
    const [line] = await shop.items(short.id)
    await shop.report({ kind: 'order.cancelled', order_id: cancelled.id })
    await shop.report({ kind: 'order.timed_out', order_id: timedOut.id, bins: [], lines: [] })
    await shop.report({
      kind: 'order.ready',
      order_id: short.id,
      bins: [1],
      lines: [{ line_id: line!.id, dropped: 1, doubtful: 0, bins: [1] }],
    })
    expect(await counted(shop)).toMatchObject({ orders: 3, units: 1, revenue: 0, cost: 100 })
    expect((await shop.order(cancelled.id)).payment_status).toBe('completed')
  })

  test('an owner’s refund reduces a sale, and a fully refunded order is no sale', async () => {
    const shop = await openShop(await open())
    const { id, total } = await shop.paidOrder({ 1: 2, 2: 1 })
    shop.answer({ kind: 'offline' })
    const refund = (amount?: number) =>
      refundOrder(shop.services, {
        orderId: id,
        mayTouch: () => Promise.resolve(true),
        actor: 'test',
        amount,
      })
    await refund(100)
    const part = await counted(shop)
    expect(part).toMatchObject({ orders: 1, units: 3, cost: 300 })
    expect(part.revenue).toBe(679 - (100 - Math.floor((56 * 100) / total!)))
    await refund()
    expect(await counted(shop)).toEqual(NOTHING)
  })

  test('a refund that the processor refuses does not reduce a sale', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 }, 'pm_card_refundFail')
    const refund = refundOrder(shop.services, {
      orderId: id,
      mayTouch: () => Promise.resolve(true),
      actor: 'test',
      amount: 100,
    })
    await expect(refund).rejects.toMatchObject({ code: 'refund_failed' })
    expect(await counted(shop)).toMatchObject({ units: 1, revenue: 250, cost: 100 })
  })
})
