import { expect, test } from 'vitest'
import { deadLettersChanged } from '../../../../cloud/operations/alarms/hub-alarms.ts'
import { uuid } from '../../../support/uuid.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

/** Entries of hub 1 about unknown rows become dead letters. */
const report = (shop: Shop, ...bodies: object[]): Promise<void> =>
  shop.context.db.transact(async (tx) => {
    for (const body of bodies) {
      const seq = await tx.q
        .selectFrom('dead_letters')
        .select((eb) => eb.fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      await tx.q
        .insertInto('dead_letters')
        .values({
          hub_id: 1,
          stream: 'ledger',
          epoch: 'e'.repeat(32),
          seq: seq.count + 1,
          body: JSON.stringify(body),
          error: 'it cannot be applied',
          at: shop.clock.now(),
        })
        .execute()
    }
    deadLettersChanged(tx, shop.context, 1)
  })

async function orders(shop: Shop): Promise<unknown[] | undefined> {
  const alarm = await shop.context.db.kysely
    .selectFrom('alarms')
    .select('details')
    .where('kind', '=', 'database_restored')
    .where('cleared_at', 'is', null)
    .executeTakeFirst()
  return alarm && (JSON.parse(alarm.details) as { orders: unknown[] }).orders
}

onEachDatabase('a hub that reports what the database has lost', (open) => {
  test('a hub that reports lost orders raises database_restored, and their numbers are not issued again', async () => {
    const shop = await openShop(await open())
    const lost = uuid(41)
    await report(shop, { kind: 'order.preparing', order_id: lost, bins: [1], at: 1 })
    expect(await orders(shop)).toEqual([{ order_uuid: lost, order_id: null, hub_id: 1 }])
    await report(shop, { kind: 'order.completed', order_id: lost, number: 41, at: 2 })
    expect(await orders(shop)).toEqual([{ order_uuid: lost, order_id: 41, hub_id: 1 }])
    expect((await shop.paidOrder({ 1: 1 })).id).toBe(42)
  })

  test('a hub with other dead letters or known orders raises no database_restored', async () => {
    const shop = await openShop(await open())
    const { uuid: known } = await shop.paidOrder({ 1: 1 })
    await report(
      shop,
      { kind: 'order.completed', order_id: known, at: 1 },
      { kind: 'stock.counted', order_id: uuid(9), at: 1 },
      { kind: 'order.teleported', at: 1 },
    )
    expect(await orders(shop)).toBeUndefined()
  })

  test('a dead letter of a lost order contains an error with a remedy', async () => {
    const shop = await openShop(await open())
    await expect(shop.report({ kind: 'order.collecting', order_id: uuid(7) })).rejects.toThrow(
      /has no order .* drop this letter/,
    )
  })
})
