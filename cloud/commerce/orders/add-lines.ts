import { availableOf } from '../catalogue/availability.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { MAX_QUANTITY, putLine, removeLine } from './cart.ts'
import type { OrderRow } from './order-rows.ts'

export interface WantedLine {
  productId: number
  quantity: number
}

export interface UnavailableLine {
  product_id: number
  requested: number
  available: number
}

/**
 * Adds units to a cart, product by product and no more than there is stock; the cart's own units count too. Returns of
 * what there is less than would be wanted. Under the cart's lock.
 */
export async function addLines(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  cart: OrderRow,
  wanted: readonly WantedLine[],
): Promise<UnavailableLine[]> {
  const present = await tx.q
    .selectFrom('order_items')
    .select(['product_id', 'qty'])
    .where('order_id', '=', cart.id)
    .execute()
  const unavailable: UnavailableLine[] = []
  for (const { productId, quantity } of wanted) {
    const had = present.find(({ product_id }) => product_id === productId)?.qty ?? 0
    const requested = had + quantity
    const available = Math.min(await availableOf(tx.q, productId), MAX_QUANTITY)
    if (available < requested) unavailable.push({ product_id: productId, requested, available })
    if (available > 0) await putLine(tx, cart.id, productId, Math.min(requested, available))
    else await removeLine(tx, cart.id, productId)
  }
  const changed = { version: cart.version + 1, updated_at: runtime.clock.now() }
  await tx.q.updateTable('orders').set(changed).where('id', '=', cart.id).execute()
  Object.assign(cart, changed)
  return unavailable
}
