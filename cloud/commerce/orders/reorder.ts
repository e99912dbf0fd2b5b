import { isEditable } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { addLines, type UnavailableLine } from './add-lines.ts'
import { openCart } from './cart.ts'
import { lockOrder, readOwnOrder, type OrderRow } from './order-rows.ts'

export interface Reorder {
  userId: number
  sourceOrderId: number
  targetHubId: number
}

/**
 * Puts the items of an earlier order into the user's cart at a hub, which is opened if need be. At another hub a product is
 * the one with the same UPC. Throws `order_not_found`, `order_not_editable`, and what opening a cart throws.
 */
export function reorder(
  context: CloudContext,
  { userId, sourceOrderId, targetHubId }: Reorder,
): Promise<{ order: OrderRow; unavailable: UnavailableLine[] }> {
  return context.db.transact(async (tx) => {
    const source = await readOwnOrder(tx.q, { orderId: sourceOrderId, userId })
    const cart = await lockedCart(tx, context, { userId, hubId: targetHubId })
    if (!isEditable(cart.processing_status))
      throw new ApiError('order_not_editable', undefined, { order_id: cart.id })
    // A cart holds its own items already.
    if (cart.id === source.id) return { order: cart, unavailable: [] }
    const lines = await counterparts(tx.q, source.id, targetHubId)
    const known = lines.flatMap(({ targetId, qty }) =>
      targetId === undefined ? [] : [{ productId: targetId, quantity: qty }],
    )
    const unknown = lines
      .filter(({ targetId }) => targetId === undefined)
      .map(({ product_id, qty }) => ({ product_id, requested: qty, available: 0 }))
    return { order: cart, unavailable: [...(await addLines(tx, context, cart, known)), ...unknown] }
  })
}

/** The user's active order at a hub. One that is deleted while its lock is waited for is no more: another is opened. */
async function lockedCart(
  tx: Tx,
  context: CloudContext,
  owner: { userId: number; hubId: number },
): Promise<OrderRow> {
  const { id } = await openCart(tx, context, owner)
  return (await lockOrder(tx, id)) ?? lockedCart(tx, context, owner)
}

/** An order's lines, and which product of a hub each would be there. */
async function counterparts(q: Queries, orderId: number, hubId: number) {
  const lines = await q
    .selectFrom('order_items as i')
    .innerJoin('products as p', 'p.id', 'i.product_id')
    .where('i.order_id', '=', orderId)
    .orderBy('i.id')
    .select((eb) => ['i.product_id', 'i.qty', eb.fn.coalesce('i.upc', 'p.upc').as('upc')])
    .execute()
  const upcs = lines.map(({ upc }) => upc)
  const targets =
    upcs.length === 0
      ? []
      : await q
          .selectFrom('products')
          .select(['id', 'upc'])
          .where('hub_id', '=', hubId)
          .where('is_active', '=', 1)
          .where('upc', 'in', upcs)
          .execute()
  return lines.map((line) => ({ ...line, targetId: targets.find(({ upc }) => upc === line.upc)?.id }))
}
