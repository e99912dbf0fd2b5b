import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { drop, openShop, type Shop } from '../../../world/shop.ts'

const lost = ['money_operations', 'refunds', 'payments', 'order_items', 'orders', 'users'] as const

/**
 * Restores a copy from before the first sale; the processor and the hub are separate, and keep their data.
 */
async function restore(shop: Shop): Promise<void> {
  const { db } = shop.context
  await db.kysely.deleteFrom('sales').execute()
  for (const table of lost) {
    await db.kysely.deleteFrom(table).execute()
    if (table === 'money_operations') continue
    const again =
      db.kind === 'sqlite'
        ? sql`delete from sqlite_sequence where name = ${table}`
        : sql`alter table ${sql.table(table)} alter column id restart with 1`
    await again.execute(db.kysely)
  }
  // The restore takes some time.
  shop.clock.advance(60_000)
}

onEachDatabase('a restored database', (open) => {
  test('a restored database issues numbers again, and neither the processor nor the hub confuses the new order with the lost one', async () => {
    const shop = await openShop(await open())
    const before = await shop.paidOrder({ 1: 2 })
    const [line] = await shop.items(before.id)
    await restore(shop)
    const after = await shop.paidOrder({ 2: 1 })
    expect(after.id).toBe(before.id)
    expect(after.uuid).not.toBe(before.uuid)
    expect((await shop.bank.intents()).map(({ amount }) => amount)).toEqual([before.total, after.total])

    // The hub's work for the lost order belongs to no other order; dropped units have left the shelf.
    const report = { order_id: before.uuid, bins: [1] }
    await expect(shop.report({ kind: 'order.preparing', ...report })).rejects.toThrow(before.uuid)
    await shop.report({ ...drop(line!, 1, 4), order_id: before.uuid } as never)
    expect(await shop.product(1)).toMatchObject({ quantity: 4 })
    expect(await shop.order(after.id)).toMatchObject({ processing_status: S.QUEUED })
    expect(await shop.items(after.id)).toMatchObject([{ qty_dropped: 0 }])
  })

  test('a restored database issues ids of refunds again, and the processor does not confuse the new refund with the lost one', async () => {
    const db = await open()
    const shop = await openShop(db)
    const fail = async (): Promise<number> => {
      const { id, uuid } = await shop.paidOrder({ 1: 1 })
      await shop.report({ kind: 'order.failed', order_id: uuid, reason: 'jam', bins: [], lines: [] })
      await shop.work.drain()
      return id
    }
    await fail()
    await db.kysely.deleteFrom('due_work').execute()
    await restore(shop)
    const id = await fail()
    expect(await shop.order(id)).toMatchObject({ payment_status: 'refunded' })
    const intents = await shop.bank.intents()
    expect(intents.map(({ refunded }) => refunded)).toEqual(intents.map(({ amount }) => amount))
  })
})

onEachDatabase('a database that is restored while a hub is asked', (open) => {
  test.each(['refund', 'deletion'] as const)(
    'a restored database no longer has the order that the hub is asked about: %s',
    async (what) => {
      const shop = await openShop(await open())
      const order = await shop.paidOrder({ 1: 1 })
      const services = {
        ...shop.services,
        commands: {
          async send() {
            await restore(shop)
            return { kind: 'executed', commandId: 'c', data: null } as const
          },
        },
      } as unknown as Shop['services']
      const mayTouch = () => Promise.resolve(true)
      const asked =
        what === 'refund'
          ? refundOrder(services, { orderId: order.id, mayTouch, actor: 'owner' })
          : deleteOrder(services, { orderId: order.id, userId: order.user_id }, 'user')
      await expect(asked).rejects.toMatchObject({ code: 'order_not_found' })
    },
  )
})

onEachProcessor('a restored database with lost refunds', (open) => {
  test('a restored database finds lost refunds at the processor when it requests them again in vain', async () => {
    const shop = await open()
    const q = shop.context.db.kysely
    const { id, uuid } = await shop.paidOrder({ 1: 2, 2: 1 })
    const lines = await shop.items(id)
    await shop.report({ kind: 'order.failed', order_id: uuid, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()
    const paid = await shop.bank.intents()
    expect(paid[0]!.refunded).toBe(paid[0]!.amount)
    expect(await shop.refunds(id)).toHaveLength(lines.length)

    // A copy from before the order's end: the hub reports it again, and its refunds are requested under other
    // keys.
    await q.deleteFrom('refunds').execute()
    await q.deleteFrom('money_operations').where('kind', '=', 'refund').execute()
    await q.deleteFrom('due_work').where('kind', 'like', '%refund%').execute()
    await q
      .updateTable('orders')
      .set({ processing_status: S.PREPARING, payment_status: 'completed', finished_at: null })
      .where('id', '=', id)
      .execute()
    await q.updateTable('order_items').set({ refunded_quantity: 0 }).where('order_id', '=', id).execute()
    shop.clock.advance(60_000)
    await shop.report({ kind: 'order.failed', order_id: uuid, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()

    expect(await shop.order(id)).toMatchObject({ payment_status: 'refunded' })
    expect((await shop.bank.intents()).map(({ refunded }) => refunded)).toEqual([paid[0]!.amount])
    const refunds = await shop.refunds(id)
    const back = refunds.filter(({ status }) => status === 'succeeded')
    expect(back.map(({ reason }) => reason)).toEqual(lines.map(() => 'processor'))
    expect(back.reduce((sum, { amount }) => sum + amount, 0)).toBe(paid[0]!.amount)
    const alarms = await q.selectFrom('alarms').select('kind').where('cleared_at', 'is', null).execute()
    expect(alarms).toEqual([])
    // Later work finds nothing owed.
    shop.clock.advance(7 * 86_400_000)
    await shop.work.drain()
    expect(await shop.refunds(id)).toHaveLength(refunds.length)
    expect(await q.selectFrom('due_work').select('kind').where('kind', 'like', 'refund%').execute()).toEqual(
      [],
    )
  })
})
