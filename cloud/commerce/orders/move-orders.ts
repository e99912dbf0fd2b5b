import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { countSale } from '../analytics/refresh-sales.ts'
import { removeCart } from './move-order.ts'
import { LAST_ACTIVE, lockOrder, type OrderRow } from './order-rows.ts'
import { giveOrder, takeCart } from './transfer-order.ts'

/** Two users of one person: everything of `from` becomes `to`'s. */
export interface Joined {
  from: number
  to: number
}

/**
 * Moves all orders of a user to another user, with their payments, notices and redemptions. Carts at one hub are merged.
 * A cart gives way to an order that is paid or being paid, because a user has one active order at a hub. Throws
 * `order_in_progress` if both users have such an order at one hub. Locks the orders.
 */
export async function moveOrders(tx: Tx, context: CloudContext, users: Joined): Promise<void> {
  const { from, to } = users
  const orders = await lockOrders(tx, users)
  const rivals = orders.filter(({ user_id }) => user_id === to)
  for (const order of orders.filter(({ user_id }) => user_id === from)) {
    const rival = rivals.find(({ hub_id }) => hub_id === order.hub_id)
    if (order.processing_status === OrderStatus.NEW) await moveCart(tx, context, order, to)
    else {
      if (rival && order.processing_status <= OrderStatus.COLLECTING) await giveWay(tx, context, rival, order)
      await giveOrder(tx, context, order, to)
    }
    if (order.queued_at !== null) countSale(tx, order.id)
  }
  const moved = { user_id: to }
  await tx.q.updateTable('payments').set(moved).where('user_id', '=', from).execute()
  await tx.q.updateTable('deal_redemptions').set(moved).where('user_id', '=', from).execute()
  await tx.q.updateTable('notifications').set(moved).where('user_id', '=', from).execute()
}

/** Locks all orders of `from` and the active orders of `to`, in the order of their ids, so that no two transactions deadlock. */
async function lockOrders(tx: Tx, { from, to }: Joined): Promise<OrderRow[]> {
  const found = await tx.q
    .selectFrom('orders')
    .select('id')
    .where((eb) =>
      eb.or([
        eb('user_id', '=', from),
        eb.and([eb('user_id', '=', to), eb('processing_status', '<=', LAST_ACTIVE)]),
      ]),
    )
    .orderBy('id')
    .execute()
  const locked: OrderRow[] = []
  for (const { id } of found) {
    const order = await lockOrder(tx, id)
    if (order) locked.push(order)
  }
  return locked
}

/** Moves or merges a cart. A cart that cannot be moved is removed. */
async function moveCart(tx: Tx, context: CloudContext, cart: OrderRow, userId: number): Promise<void> {
  try {
    await tx.savepoint(() => takeCart(tx, context, cart, userId))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    await removeCart(tx, context, cart)
  }
}

async function giveWay(tx: Tx, context: CloudContext, rival: OrderRow, order: OrderRow): Promise<void> {
  const { processing_status: status } = rival
  if (status > OrderStatus.COLLECTING) return
  if (status === OrderStatus.NEW) return removeCart(tx, context, rival)
  throw new ApiError(
    'order_in_progress',
    `You have an unfinished order at this hub here (${order.id}) and in your account (${rival.id}). Finish one of them, then sign in.`,
    { order_ids: [order.id, rival.id] },
  )
}
