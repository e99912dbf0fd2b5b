import { ApplyError } from '../../gateway/domain.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { availableUnits } from './units.ts'

interface ProductQuantity {
  productId: number
  quantity: number
}

interface Shortage {
  product_id: number
  requested: number
  available: number
}

/**
 * Reserves units for an order. Check and reservation are one statement, so that the last unit is reserved once however many
 * ask. Returns what is short; the caller then rolls back.
 */
export async function reserve(tx: Tx, lines: readonly ProductQuantity[]): Promise<Shortage[]> {
  const shortages: Shortage[] = []
  // Always in the same order, so that two orders cannot wait for one another.
  for (const { productId, quantity } of lines.toSorted((a, b) => a.productId - b.productId)) {
    const reserved = await tx.q
      .updateTable('products')
      .set((eb) => ({ reserved: eb('reserved', '+', quantity) }))
      .where('id', '=', productId)
      .where('is_active', '=', 1)
      .where(availableUnits, '>=', quantity)
      .executeTakeFirst()
    if (reserved.numUpdatedRows === 1n) continue
    const available = await availableOf(tx.q, productId)
    shortages.push({ product_id: productId, requested: quantity, available })
  }
  return shortages
}

/** Releases reservations. */
export async function unreserve(tx: Tx, lines: readonly ProductQuantity[]): Promise<void> {
  for (const { productId, quantity } of lines.toSorted((a, b) => a.productId - b.productId))
    if (quantity > 0)
      await tx.q
        .updateTable('products')
        .set((eb) => ({ reserved: eb('reserved', '-', quantity) }))
        .where('id', '=', productId)
        .execute()
}

/** Units of an active product that can still be sold, never below 0. */
export async function availableOf(q: Queries, productId: number): Promise<number> {
  const row = await q
    .selectFrom('products')
    .select(availableUnits.as('available'))
    .where('id', '=', productId)
    .where('is_active', '=', 1)
    .executeTakeFirst()
  return Math.max(0, row?.available ?? 0)
}

/** Units of an order's line that left the shelf. */
interface Delivered {
  orderId: number
  itemId: number
  delivered: number
}

/** Each unit that dropped for an order is no longer reserved for it: the reservation ends with the unit on the shelf. */
export async function consumeReservations(tx: Tx, drops: readonly Delivered[]): Promise<void> {
  const lines = new Map<number, Delivered>()
  for (const drop of drops) {
    const delivered = (lines.get(drop.itemId)?.delivered ?? 0) + drop.delivered
    if (delivered > 0) lines.set(drop.itemId, { ...drop, delivered })
  }
  const released = []
  for (const { orderId, itemId, delivered } of [...lines.values()].toSorted((a, b) => a.itemId - b.itemId)) {
    const item = await lockItem(tx, orderId, itemId)
    const freed = Math.min(item.reserved, delivered)
    await tx.q
      .updateTable('order_items')
      .set({ reserved: item.reserved - freed, qty_dropped: item.qty_dropped + delivered })
      .where('id', '=', itemId)
      .execute()
    released.push({ productId: item.product_id, quantity: freed })
  }
  await unreserve(tx, released)
}

/** A line of an order, locked. */
export async function lockItem(tx: Tx, orderId: number, itemId: number) {
  const item = await tx
    .forUpdate(
      tx.q.selectFrom('order_items').selectAll().where('id', '=', itemId).where('order_id', '=', orderId),
    )
    .executeTakeFirst()
  if (!item) throw new ApplyError(`order ${orderId} has no line ${itemId}`)
  return item
}
