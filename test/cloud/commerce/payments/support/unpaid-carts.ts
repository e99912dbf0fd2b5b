import { createOrder, setItem } from '../../../../../cloud/commerce/orders/cart.ts'
import { pay } from '../../../../../cloud/commerce/payments/pay.ts'
import { hubRow } from '../../../../world/seeds.ts'
import type { Shop } from '../../../../world/shop.ts'

export interface Cart {
  userId: number
  orderId: number
}

export const MINUTE = 60_000

/** A user without an account. */
export async function newGuest(shop: Shop): Promise<number> {
  const userId = await shop.customer()
  await shop.context.db.kysely
    .updateTable('users')
    .set({ is_anonymous: 1 })
    .where('id', '=', userId)
    .execute()
  return userId
}

export const verify = (shop: Shop, userId: number) =>
  shop.context.db.kysely.updateTable('users').set({ email_verified: 1 }).where('id', '=', userId).execute()

export async function cartOf(shop: Shop, units = 1, userId?: number) {
  const user = userId ?? (await shop.customer())
  return { userId: user, orderId: (await shop.cart(user, { 1: units })).id }
}

export const claim = (shop: Shop, cart: { userId: number; orderId: number }) =>
  pay(shop.services, { ...cart, method: 'external' })

/** A second hub that sells like hub 1, with one product. */
export async function secondHub(shop: Shop): Promise<number> {
  const q = shop.context.db.kysely
  const { id } = await q.insertInto('hubs').values(hubRow({})).returning('id').executeTakeFirstOrThrow()
  const copy = async (table: 'hub_sessions' | 'hub_bins' | 'hub_outboxes') => {
    const rows = await q.selectFrom(table).selectAll().where('hub_id', '=', 1).execute()
    for (const row of rows)
      await q
        .insertInto(table)
        .values({ ...row, hub_id: id })
        .execute()
  }
  for (const table of ['hub_sessions', 'hub_bins', 'hub_outboxes'] as const) await copy(table)
  const product = await q.selectFrom('products').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  await q
    .insertInto('products')
    .values({ ...product, id: 100, hub_id: id })
    .execute()
  await q
    .insertInto('facings')
    .values({ hub_id: id, cabinet: 1, shelf: 1, row: 1, product_id: 100, is_primary: 1, quantity: 5 })
    .execute()
  return id
}

/** A cart of a user at the second hub. */
export async function cartAt(shop: Shop, userId: number, hubId: number): Promise<number> {
  const { id } = await createOrder(shop.context, { userId, hubId })
  await setItem(shop.context, { userId, orderId: id }, { productId: 100, quantity: 1 })
  return id
}
