import { sql, type Selectable } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

export type OrderRow = Selectable<Tables['orders']>
export type ItemRow = Selectable<Tables['order_items']>

/**
 * For `processing_status <= LAST_ACTIVE`. It stands in the statement itself: as a parameter it would keep the database
 * from the indexes that hold active orders alone.
 */
export const LAST_ACTIVE = sql.lit(OrderStatus.COLLECTING)

/** An order, locked to the end of the transaction. Every change of an order, its payments or refunds begins with this. */
export function lockOrder(tx: Tx, orderId: number): Promise<OrderRow | undefined> {
  return tx.forUpdate(tx.q.selectFrom('orders').selectAll().where('id', '=', orderId)).executeTakeFirst()
}

/** The same by the id under which a hub knows it. */
export function lockOrderOfHub(tx: Tx, hubId: number, uuid: string): Promise<OrderRow | undefined> {
  return tx
    .forUpdate(tx.q.selectFrom('orders').selectAll().where('uuid', '=', uuid).where('hub_id', '=', hubId))
    .executeTakeFirst()
}

/** Whether an order that is no cart was ever paid: one that expired or was deleted before was not. */
export const wasPaid = ({ queued_at }: Pick<OrderRow, 'queued_at'>): boolean => queued_at !== null

/** Of an order, whose it must be; anything else is not found rather than denied. */
export interface OrderKey {
  orderId: number
  userId: number
  hubId?: number | undefined
}

export async function lockOwnOrder(tx: Tx, key: OrderKey): Promise<OrderRow> {
  return requireOwn(await lockOrder(tx, key.orderId), key)
}

export async function readOwnOrder(q: Queries, key: OrderKey): Promise<OrderRow> {
  const order = await q.selectFrom('orders').selectAll().where('id', '=', key.orderId).executeTakeFirst()
  return requireOwn(order, key)
}

function requireOwn(order: OrderRow | undefined, { userId, hubId }: OrderKey): OrderRow {
  if (!order || order.user_id !== userId || (hubId !== undefined && order.hub_id !== hubId))
    throw new ApiError('order_not_found')
  return order
}

/** An order's lines, oldest first, locked. */
export function lockItems(tx: Tx, orderId: number): Promise<ItemRow[]> {
  return tx
    .forUpdate(tx.q.selectFrom('order_items').selectAll().where('order_id', '=', orderId).orderBy('id'))
    .execute()
}

/** A column that holds a list of bin numbers. */
export const parseBins = (text: string): number[] => JSON.parse(text) as number[]
