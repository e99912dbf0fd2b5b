import { ApplyError } from '../../gateway/domain.ts'
import type { Tx } from '../../platform/store/database.ts'
import { unreserve } from './availability.ts'

/** Units of an order's line that left the shelf. */
export interface Delivered {
  order_id: number | null
  line_id: number | null
  delivered: number
}

/** Each unit that dropped for an order is no longer promised to it: the promise ends with the unit on the shelf. */
export async function consumePromises(tx: Tx, hubId: number, drops: readonly Delivered[]): Promise<void> {
  const units = new Map<number, number>()
  for (const { order_id, line_id, delivered } of drops)
    if (order_id !== null && line_id !== null && delivered > 0)
      units.set(line_id, (units.get(line_id) ?? 0) + delivered)
  const released = []
  for (const [itemId, delivered] of [...units].toSorted(([a], [b]) => a - b)) {
    const item = await lockItem(tx, hubId, itemId)
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

/** A line of an order of this hub, locked. A hub cannot touch another one's. */
export async function lockItem(tx: Tx, hubId: number, itemId: number) {
  const item = await tx
    .forUpdate(tx.q.selectFrom('order_items').selectAll().where('id', '=', itemId))
    .executeTakeFirst()
  if (item) {
    const order = await tx.q
      .selectFrom('orders')
      .select('hub_id')
      .where('id', '=', item.order_id)
      .executeTakeFirstOrThrow()
    if (order.hub_id === hubId) return item
  }
  throw new ApplyError(`hub ${hubId} has no order line ${itemId}`)
}
