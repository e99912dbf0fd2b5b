import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { OperationEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'

/**
 * The hub's orders of which entries speak, by the id that the hub knows. Units that fell for an order that the cloud does
 * not know (it was restored to a time before the order) left the shelf all the same, and are no other order's.
 */
export async function findOrders(
  tx: Tx,
  { log }: CloudContext,
  hubId: number,
  entries: readonly (StockEntry | OperationEntry)[],
): Promise<ReadonlyMap<string, number>> {
  const uuids = new Set(
    entries.flatMap((entry) => ('order_id' in entry && entry.order_id !== null ? [entry.order_id] : [])),
  )
  if (uuids.size === 0) return new Map()
  const known = await tx.q
    .selectFrom('orders')
    .select(['id', 'uuid'])
    .where('hub_id', '=', hubId)
    .where('uuid', 'in', [...uuids])
    .execute()
  const found = new Map(known.map(({ uuid, id }) => [uuid, id]))
  const unknown = [...uuids].filter((uuid) => !found.has(uuid))
  if (unknown.length > 0)
    log.warn({ hubId, orders: unknown }, 'units fell for orders that are not known here')
  return found
}

/** Which of some orders wait for their hub's account: what has become of each of their units is not told in whole yet. */
export async function unaccounted(tx: Tx, orderIds: readonly number[]): Promise<ReadonlySet<number>> {
  if (orderIds.length === 0) return new Set()
  const rows = await tx.q
    .selectFrom('orders')
    .select('id')
    .where('id', 'in', [...new Set(orderIds)])
    .where('processing_status', '<=', OrderStatus.PREPARING)
    .execute()
  return new Set(rows.map(({ id }) => id))
}
