import { textsIn } from '../../platform/store/in-list.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { OperationEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/in-list.ts'
import { statement } from '../../platform/store/statement.ts'

/**
 * The hub's orders of which entries speak, by the id that the hub knows. Units that fell for an order that the cloud does
 * not know (it was restored to a time before the order) left the shelf all the same, and are no other order's. They are
 * locked, before anything of theirs is.
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

/**
 * Orders have become other ones for their customers, and stay where they stand: each gets another version, and whoever
 * follows it is told. Under their locks.
 */
export async function renewVersions(tx: Tx, hubId: number, orderIds: readonly number[]): Promise<void> {
  if (orderIds.length === 0) return
  await nextVersions(tx.q, { orderIds })
  for (const orderId of orderIds) tx.tell({ kind: 'order', orderId, hubId })
}

const nextVersions = statement((q, { orderIds }: { orderIds: readonly number[] }) =>
  q
    .updateTable('orders')
    .set((eb) => ({ version: eb('version', '+', 1) }))
    .where('id', 'in', numbersIn(q, orderIds)),
)
