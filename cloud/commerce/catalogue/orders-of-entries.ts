import { textsIn, numbersIn } from '../../platform/store/recordset.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { OperationEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'

/**
 * Finds and locks the orders that a hub's entries name, by the hub's ids. If the cloud does not know an order (it was
 * restored to an earlier time), its units left the shelf anyway, and belong to no other order.
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
  const known = await tx
    .forUpdate(
      tx.q
        .selectFrom('orders')
        .select(['id', 'uuid'])
        .where('hub_id', '=', hubId)
        .where('uuid', 'in', textsIn(tx.q, [...uuids]))
        .orderBy('id'),
    )
    .execute()
  const found = new Map(known.map(({ uuid, id }) => [uuid, id]))
  const unknown = [...uuids].filter((uuid) => !found.has(uuid))
  if (unknown.length > 0)
    log.warn({ hubId, orders: unknown }, 'units fell for orders that are not known here')
  return found
}

/** The orders among these that still wait for their hub's complete report of each unit. */
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

/**
 * Gives orders a new version when their customers see a change but the status does not change, and notifies live
 * readers. Call it under their locks.
 */
export async function renewVersions(tx: Tx, hubId: number, orderIds: readonly number[]): Promise<void> {
  if (orderIds.length === 0) return
  await nextVersions(tx.q, { orderIds })
  for (const orderId of orderIds) tx.notify({ kind: 'order', orderId, hubId })
}

const nextVersions = statement((q, { orderIds }: { orderIds: readonly number[] }) =>
  q
    .updateTable('orders')
    .set((eb) => ({ version: eb('version', '+', 1) }))
    .where('id', 'in', numbersIn(q, orderIds)),
)
