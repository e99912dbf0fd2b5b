import { expect, test } from 'vitest'
import { post } from '../../../../cloud/commerce/ledger/ledger.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { requireCurrency } from '../../../../cloud/commerce/orders/require-currency.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

onEachDatabase('the currency of a database', (open) => {
  test('an order has the currency of its checkout; a start with another one is refused while money is open', async () => {
    const shop = await openShop(await open())
    const { context } = shop
    const q = context.db.kysely
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await requireCurrency(q, 'JPY')
    context.settings.currency = 'EUR'
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    expect((await shop.order(id)).currency).toBe('EUR')
    await requireCurrency(q, 'EUR')
    await expect(requireCurrency(q, 'JPY')).rejects.toThrow(/Set CURRENCY to EUR/)
    await q.updateTable('orders').set({ processing_status: OrderStatus.COMPLETED }).execute()
    await requireCurrency(q, 'JPY')
    await context.db.transact((tx) =>
      post(tx, context, {
        user_id: userId,
        account: 'wallet',
        type: 'adjustment',
        amount: 100,
        cause: 'a test',
      }),
    )
    await expect(requireCurrency(q, 'JPY')).rejects.toThrow(/all wallets are empty/)
  })
})
