import { expect, test } from 'vitest'
import type { Receipt } from '../../protocol/contract/receipt.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { onEachDatabase } from '../world/database.ts'
import { openWorld } from './walk/world.ts'

onEachDatabase('a receipt', (open) => {
  test('a receipt shows lines, tax, payments and refunds of a paid order, as JSON and as a page', async () => {
    const world = await openWorld(open)
    const q = world.shop.context.db.kysely
    const user_id = await world.user('ada')
    await q.updateTable('products').set({ name: 'Soup <hot>' }).where('id', '=', 1).execute()
    const { id: order_id, queued_at } = await world.shop.paidOrder({ 1: 1, 2: 1 })
    await q.updateTable('orders').set({ user_id }).where('id', '=', order_id).execute()
    await world.owner('POST', `orders/${order_id}/items/2/refund`)
    // The receipt shows the rate of the sale.
    await q.updateTable('hubs').set({ tax_millipercent: 9000 }).execute()
    const call = { as: { customer: 'ada' }, params: { user_id, order_id } }
    const receipt = (await world.ask(routes['consumer.orders.receipt'], call)).json as Receipt
    const paid_at = new Date(queued_at!).toISOString()
    expect(receipt).toMatchObject({
      receipt_number: `1-${order_id}`,
      order_id,
      seller: 'Owner',
      hub: { id: 1 },
      issued_at: paid_at,
      paid_at,
      currency: 'USD',
      items: [
        { name: 'Soup <hot>', productUPC: '000000000001', qty: 1, price: 250, line_total: 250 },
        { name: 'Product 2', refunded_quantity: 1, unit_price_original: 199, price: 179, line_total: 179 },
      ],
      total_price_original: 449,
      discount_total: 20,
      tax_rate: 8.25,
      tax_total: 36,
      total: 465,
      payments: [{ type: 'card', amount: 465, paid_at }],
      refunds: [{ amount: 194, status: 'succeeded' }],
      refunded_total: 194,
    })
    const page = await world.ask(routes['consumer.orders.receipt'], {
      ...call,
      headers: { Accept: 'text/html' },
    })
    expect(page.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
    expect(page.json).toContain('Soup &lt;hot&gt;')
    expect(page.json).toContain('4.65 USD')
  })
})
