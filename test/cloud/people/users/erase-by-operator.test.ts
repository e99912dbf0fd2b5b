import { expect, test } from 'vitest'
import { post } from '../../../../cloud/commerce/ledger/ledger.ts'
import { eraseByOperator } from '../../../../cloud/people/users/delete-user.ts'
import { exportUser } from '../../../../cloud/people/users/export-user.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'

const credit = { user_id: 1, account: 'wallet', type: 'adjustment', order_id: null } as const

onEachDatabase('an operator who answers a customer’s request', (open) => {
  test('an operator exports and erases a customer if no order is unfinished and no money is owed', async () => {
    const { customer, shop } = await openService(open)
    const { context } = shop
    const q = context.db.kysely
    const ada = { first_name: 'Ada', last_name: 'Lovelace', phone_number: '+14155550100' }
    await customer('ada', 'POST', '/users/user/bootstrap', ada)
    const cart = async (): Promise<number> => {
      const { json } = await customer('ada', 'POST', '/users/1/orders?hub_id=1')
      const { order_id } = json as { order_id: number }
      const item = { product_id: 1, quantity: 1 }
      await customer('ada', 'PUT', `/users/1/orders/${order_id}/order_item?hub_id=1`, item)
      return order_id
    }
    const erased = () => context.db.transact((tx) => eraseByOperator(tx, context, 1))
    const credited = (amount: number, cause: string) =>
      context.db.transact((tx) => post(tx, context, { ...credit, amount, cause }))

    const paid = await cart()
    await customer('ada', 'POST', '/users/payments/pay', {
      order_id: paid,
      payment_method_id: 'pm_card_visa',
    })
    await expect(erased()).rejects.toThrow('order_in_progress')
    const ended = { processing_status: OrderStatus.COMPLETED }
    await q.updateTable('orders').set(ended).where('id', '=', paid).execute()
    const open_cart = await cart()
    await credited(5, 'a gift')
    await expect(erased()).rejects.toThrow('wallet_not_empty')
    await credited(-5, 'the end')

    const exported = await exportUser(q, 1)
    expect(exported).toMatchObject({
      user_id: 1,
      user: { last_name: 'Lovelace' },
      payments: [{ order_id: paid }],
    })
    expect(exported['orders']).toHaveLength(2)
    expect(exported['order_items']).toHaveLength(2)
    await expect(exportUser(q, 99)).rejects.toThrow('no such user')

    const first = await erased()
    expect(first.isNew).toBe(true)
    shop.clock.advance(1000)
    expect(await erased()).toEqual({ erasedAt: first.erasedAt, isNew: false })
    const left = await exportUser(q, 1)
    expect(JSON.stringify(left)).not.toMatch(/Ada|Lovelace|4155550100|identity:ada/)
    expect(left).toMatchObject({
      orders: [{ id: paid }],
      payments: [{ order_id: paid }],
      payment_methods: [],
    })
    expect(left['orders']).not.toContainEqual(expect.objectContaining({ id: open_cart }))
  })

  test('a customer who owes money for a deposit that its bank took back ends the debt knowingly, or an operator does', async () => {
    const { customer, shop } = await openService(open)
    const { context } = shop
    await customer('ada', 'POST', '/users/user/bootstrap', { phone_number: '+14155550100' })
    await context.db.transact((tx) =>
      post(tx, context, { ...credit, amount: 0, owed: 271, cause: 'a dispute' }),
    )
    const { status, json } = await customer('ada', 'DELETE', '/users/user')
    expect([status, json]).toMatchObject([
      409,
      { error: { code: 'wallet_not_empty', details: { debt_cents: 271 } } },
    ])
    await context.db
      .transact(async (tx) => {
        expect(await eraseByOperator(tx, context, 1)).toMatchObject({ isNew: true })
        throw new Error('another way')
      })
      .catch(() => {})
    expect((await customer('ada', 'DELETE', '/users/user?forfeit=true')).status).toBe(204)
  })

  test('a customer with a refund that the processor has refused for good is not erased, and only forfeits it knowingly', async () => {
    const { customer, shop } = await openService(open)
    const { context } = shop
    await customer('ada', 'POST', '/users/user/bootstrap', { phone_number: '+14155550100' })
    const { json } = await customer('ada', 'POST', '/users/1/orders?hub_id=1')
    const { order_id } = json as { order_id: number }
    const item = { product_id: 1, quantity: 1 }
    await customer('ada', 'PUT', `/users/1/orders/${order_id}/order_item?hub_id=1`, item)
    await customer('ada', 'POST', '/users/payments/pay', { order_id, payment_method_id: 'pm_card_visa' })
    await shop.report({ kind: 'order.failed', order_id, bins: [], lines: [], reason: 'jam' })
    await context.db.kysely.updateTable('refunds').set({ status: 'failed' }).execute()
    await context.db.kysely.deleteFrom('due_work').where('kind', '=', 'money/refund').execute()
    const erased = () => context.db.transact((tx) => eraseByOperator(tx, context, 1))
    await expect(erased()).rejects.toThrow('wallet_not_empty')
    expect((await customer('ada', 'DELETE', '/users/user')).status).toBe(409)
    expect((await customer('ada', 'DELETE', '/users/user?forfeit=true')).status).toBe(204)
  })
})
