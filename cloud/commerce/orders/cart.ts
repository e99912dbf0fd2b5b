import { isEditable, OrderStatus } from '../../../protocol/model/order-status.ts'
import { availableOf } from '../catalogue/availability.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { hubIntake, requireAccepting } from './intake.ts'
import { scheduleDeadlines } from './move-order.ts'
import { LAST_ACTIVE, lockOwnOrder, type OrderKey, type OrderRow } from './order-rows.ts'

/** The user's active order at a hub, or a new, empty cart there (contract §10). */
export function createOrder(
  context: CloudContext,
  { userId, hubId }: { userId: number; hubId: number },
): Promise<OrderRow> {
  return context.db.transact((tx) => openCart(tx, context, { userId, hubId }))
}

/** The same within a transaction. Throws `hub_not_found`, `hub_not_accepting_orders`. */
export async function openCart(
  tx: Tx,
  context: CloudContext,
  { userId, hubId }: { userId: number; hubId: number },
): Promise<OrderRow> {
  const intake = await hubIntake(tx.q, context, hubId)
  const active = await activeOrder(tx.q, userId, hubId)
  if (active) return active
  requireAccepting(intake)
  const now = context.runtime.clock.now()
  const created = await tx.q
    .insertInto('orders')
    .values({
      user_id: userId,
      hub_id: hubId,
      processing_status: OrderStatus.NEW,
      payment_status: 'unpaid',
      currency: context.settings.currency,
      total_price_original: null,
      total_price_discounted: null,
      tax_total: null,
      total: null,
      version: 1,
      reserved_bin: null,
      open_when_ready: 0,
      bins: '[]',
      queued_order: null,
      failure_reason: null,
      created_at: now,
      updated_at: now,
      queued_at: null,
      preparing_at: null,
      ready_at: null,
      finished_at: null,
    })
    // Another request of the same user may have been quicker.
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (!created) return (await activeOrder(tx.q, userId, hubId))!
  await scheduleDeadlines(tx, context, created)
  return created
}

/** A user's active order at a hub: there is at most one. */
export function activeOrder(q: Queries, userId: number, hubId: number): Promise<OrderRow | undefined> {
  return q
    .selectFrom('orders')
    .selectAll()
    .where('user_id', '=', userId)
    .where('hub_id', '=', hubId)
    .where('processing_status', '<=', LAST_ACTIVE)
    .executeTakeFirst()
}

export interface ItemChange {
  productId: number
  /** Absolute; 0 removes the line. */
  quantity: number
  /** The version that the caller has seen, where it cares. */
  version?: number | undefined
}

/** Sets the quantity of a product in a cart. */
export function setItem(
  context: CloudContext,
  key: OrderKey,
  { productId, quantity, version }: ItemChange,
): Promise<OrderRow> {
  return context.db.transact(async (tx) => {
    const order = await lockOwnOrder(tx, key)
    if (!isEditable(order.processing_status)) throw new ApiError('order_not_editable')
    if (version !== undefined && version !== order.version)
      throw new ApiError('order_state_conflict', undefined, { version: order.version })
    if (quantity === 0) await removeLine(tx, order.id, productId)
    else await putItem(tx, order, productId, quantity)
    const changed = { version: order.version + 1, updated_at: context.runtime.clock.now() }
    await tx.q.updateTable('orders').set(changed).where('id', '=', order.id).execute()
    return { ...order, ...changed }
  })
}

export async function removeLine(tx: Tx, orderId: number, productId: number): Promise<void> {
  await tx.q
    .deleteFrom('order_items')
    .where('order_id', '=', orderId)
    .where('product_id', '=', productId)
    .execute()
}

async function putItem(tx: Tx, order: OrderRow, productId: number, quantity: number): Promise<void> {
  const product = await tx.q
    .selectFrom('products')
    .select('id')
    .where('id', '=', productId)
    .where('hub_id', '=', order.hub_id)
    .where('is_active', '=', 1)
    .executeTakeFirst()
  if (!product) throw new ApiError('product_not_found')
  const available = await availableOf(tx.q, productId)
  if (quantity > available)
    throw new ApiError('insufficient_stock', undefined, {
      items: [{ product_id: productId, requested: quantity, available }],
    })
  await putLine(tx, order.id, productId, quantity)
}

/** The most units of one product in an order. */
export const MAX_QUANTITY = 1000

export async function putLine(tx: Tx, orderId: number, productId: number, quantity: number): Promise<void> {
  await tx.q
    .insertInto('order_items')
    .values({
      order_id: orderId,
      product_id: productId,
      qty: quantity,
      upc: null,
      name: null,
      image_url: null,
      unit_price_original: null,
      unit_price: null,
      purchase_price: null,
      net: null,
      tax: null,
      reserved: 0,
      qty_dropped: 0,
      qty_doubtful: 0,
      refunded_quantity: 0,
      bins: '[]',
    })
    .onConflict((conflict) => conflict.columns(['order_id', 'product_id']).doUpdateSet({ qty: quantity }))
    .execute()
}
