import { isEditable } from '../../../protocol/model/order-status.ts'
import type { VerifiedIdentity, VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import { isUniqueViolation, type Tx } from '../../platform/store/database.ts'
import { passOnAnnounced } from '../deals/redemptions.ts'
import { activeOrder, addLines } from './cart.ts'
import { moveOrder, removeCart } from './move-order.ts'
import { lockOrder, requireCart, type OrderRow } from './order-rows.ts'

export interface Transfer {
  /** The new user of the order. */
  userId: number
  anonymousUserId: number
  orderId: number
  /** The guest's identity token. */
  anonymousToken: string
}

interface Transferred {
  order: OrderRow
  merged: boolean
}

/** Another request of the same user may create a cart at the hub between the read and the move. */
const ATTEMPTS = 3

/**
 * Transfers a guest's unpaid order to the user (C §3): moves it, or merges it into the user's cart at the same hub and
 * keeps it as `merged_into`. Throws `forbidden`, `order_not_found`, `order_already_paid`, `order_not_editable`, and
 * errors of the token.
 */
export async function transferOrder(
  context: CloudContext,
  verify: VerifyIdentity,
  transfer: Transfer,
): Promise<Transferred> {
  const guest = await verify(transfer.anonymousToken)
  for (let attempt = 1; ; attempt += 1)
    try {
      return await context.db.transact(async (tx) => {
        await requireGuest(tx, transfer, guest)
        return take(tx, context, transfer)
      })
    } catch (error) {
      if (attempt === ATTEMPTS || !isUniqueViolation(error)) throw error
    }
}

async function requireGuest(
  tx: Tx,
  { userId, anonymousUserId }: Transfer,
  { identity, claims }: VerifiedIdentity,
): Promise<void> {
  const user = await tx.q
    .selectFrom('users')
    .select(['identity', 'is_anonymous'])
    .where('id', '=', anonymousUserId)
    .executeTakeFirst()
  if (!user) throw new ApiError('order_not_found')
  if (user.identity !== identity) throw new ApiError('forbidden', 'The token is not that of the guest.')
  // A guest who has become this user already has the orders.
  const isGuest = user.is_anonymous === 1 && claims.anonymous
  if (!isGuest && anonymousUserId !== userId) throw new ApiError('forbidden', 'The user is no guest.')
}

async function take(
  tx: Tx,
  context: CloudContext,
  { userId, anonymousUserId, orderId }: Transfer,
): Promise<Transferred> {
  const order = await lockOrder(tx, orderId)
  if (!order || order.user_id !== anonymousUserId || order.merged_into !== null)
    throw new ApiError('order_not_found')
  requireCart(order)
  return anonymousUserId === userId ? { order, merged: false } : takeCart(tx, context, order, userId)
}

/** Moves a locked cart to another user, or merges it into that user's cart. Throws `order_not_editable`. */
export async function takeCart(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  userId: number,
): Promise<Transferred> {
  const active = await activeOrder(tx.q, userId, order.hub_id)
  const own = active && (await lockOrder(tx, active.id))
  if (!own) return { order: await giveOrder(tx, context, order, userId), merged: false }
  if (!isEditable(own.processing_status))
    throw new ApiError('order_not_editable', "The user's own order at this hub is being paid or under way.", {
      order_id: own.id,
    })
  if (!(await hasItems(tx, own.id))) {
    await removeCart(tx, context, own)
    return { order: await giveOrder(tx, context, order, userId), merged: false }
  }
  const lines = await tx.q
    .selectFrom('order_items')
    .select(['product_id', 'qty'])
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  await addLines(
    tx,
    context,
    own,
    lines.map(({ product_id, qty }) => ({ productId: product_id, quantity: qty })),
  )
  await passOnAnnounced(tx, order.id, { cartId: own.id, userId })
  await moveOrder(tx, context, order, 'merged', { merged_into: own.id })
  return { order: own, merged: true }
}

/** Makes a locked order another user's. */
export async function giveOrder(
  tx: Tx,
  { runtime }: CloudContext,
  order: OrderRow,
  userId: number,
): Promise<OrderRow> {
  const now = runtime.clock.now()
  const isCart = isEditable(order.processing_status)
  const changed = {
    user_id: userId,
    version: order.version + 1,
    ...(isCart && { updated_at: now, touched_at: now }),
  }
  await tx.q.updateTable('orders').set(changed).where('id', '=', order.id).execute()
  tx.notify({ kind: 'order', orderId: order.id, hubId: order.hub_id })
  await passOnAnnounced(tx, order.id, { cartId: order.id, userId })
  return { ...order, ...changed }
}

async function hasItems({ q }: Tx, orderId: number): Promise<boolean> {
  const item = await q
    .selectFrom('order_items')
    .select('id')
    .where('order_id', '=', orderId)
    .executeTakeFirst()
  return item !== undefined
}
