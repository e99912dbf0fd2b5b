import { expect, test } from 'vitest'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'

const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
const intentOf = async (shop: Shop, orderId: number): Promise<string> =>
  (await shop.payments(orderId))[0]!.processor_ref!

onEachProcessor('a refund that the bank returns after its order has failed', (open) => {
  async function begun() {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.work.ensureRecurring()
    const hours = async (count: number) => {
      for (let hour = 0; hour < count; hour += 1) {
        shop.clock.advance(3_600_000)
        await shop.work.drain()
      }
    }
    return { shop, id, hours }
  }
  const fail = (shop: Shop, order_id: number) =>
    shop.report({ kind: 'order.failed', order_id, reason: 'jam', bins: [], lines: [] })
  /** Refunded money that was not returned. */
  const returned = async (shop: Shop, id: number): Promise<number> =>
    (await shop.refunds(id))
      .filter(({ status }) => status === 'succeeded')
      .reduce((sum, { amount }) => sum + amount, 0)

  test('an owner’s refund of an amount that the bank returns does not reduce the order’s owed refund', async () => {
    const { shop, id, hours } = await begun()
    await refundOrder(shop.services, { orderId: id, ...who, amount: 100 })
    await fail(shop, id)
    await hours(1)
    expect(await returned(shop, id)).toBe(541)
    await shop.bank.returnRefund((await shop.bank.refunds()).find(({ amount }) => amount === 100)!.id)
    await hours(3)
    expect(await returned(shop, id)).toBe(541)
    expect((await shop.order(id)).payment_status).toBe('refunded')
  })

  test.for([100, 541])(
    'an external refund of %i that the bank returns does not reduce the order’s owed refund',
    async (amount) => {
      const { shop, id, hours } = await begun()
      await shop.bank.giveBack(await intentOf(shop, id), amount)
      await hours(1)
      await fail(shop, id)
      await hours(1)
      expect(await returned(shop, id)).toBe(541)
      await shop.bank.returnRefund((await shop.bank.refunds()).find((one) => one.amount === amount)!.id)
      await hours(3)
      expect(await returned(shop, id)).toBe(541)
    },
  )
})
