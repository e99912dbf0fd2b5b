import type { EventType } from '../../../protocol/model/event-types.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { appendEvent } from '../../events/append-event.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readOwnerProduct } from './owner-product.ts'

type StockEvent = Extract<EventType, `inventory.${string}`>

/** Appends an event of a product. */
export const publishProduct = (
  tx: Tx,
  context: CloudContext,
  { hubId, productId }: { hubId: number; productId: number },
  type: StockEvent,
): string =>
  appendEvent(tx, context, {
    type,
    hubId,
    data: async () => ({ ...(await readOwnerProduct(tx.q, productId)), hub_id: hubId }),
  })

/**
 * The event of a change of a product's quantity. It occurs when the quantity falls below the limit, not while it stays
 * below.
 */
function stockEvent(before: number, after: number, lowStock: number): StockEvent | undefined {
  if (after <= 0) return before > 0 ? 'inventory.out_of_stock' : undefined
  return after <= lowStock && before > lowStock ? 'inventory.low_stock' : undefined
}

/**
 * Executes `change` of products' quantities and appends the resulting events. It locks the products first, in the order
 * of checkouts. Otherwise a statement that waited for a lock would sum the stock from before the wait.
 */
export async function publishStock(
  tx: Tx,
  context: CloudContext,
  productIds: readonly number[],
  change: () => Promise<void>,
): Promise<void> {
  if (productIds.length === 0) return
  const read = () =>
    tx.q
      .selectFrom('products')
      .select(['id', 'hub_id', 'name', 'quantity', 'is_active'])
      .where('id', 'in', productIds)
      .orderBy('id')
  const locked = await tx.forUpdate(read()).execute()
  const before = new Map(locked.map(({ id, quantity }) => [id, quantity]))
  await change()
  const { lowStock } = context.settings
  for (const { id, hub_id: hubId, name, quantity, is_active } of await read().execute()) {
    const was = before.get(id) ?? 0
    const type = stockEvent(was, quantity, lowStock)
    if (type !== undefined && is_active === 1) publishProduct(tx, context, { hubId, productId: id }, type)
    const incident = { hubId, kind: 'stock_low', subject: `product ${id}` } as const
    if (was > lowStock && quantity <= lowStock && is_active === 1)
      await raiseAlarm(tx, context, {
        ...incident,
        detail: `${quantity} left`,
        details: { product_id: id, name, quantity },
      })
    // An inactive product needs no restock.
    if ((was <= lowStock && quantity > lowStock) || is_active === 0) await clearAlarm(tx, context, incident)
  }
}
