import type { OperationEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { ApplyOptions } from '../../gateway/domain.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { lockItem } from './reservations.ts'
import { textsIn, numbersIn } from '../../platform/store/recordset.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { statement } from '../../platform/store/statement.ts'

/**
 * Applies an operation with an unknown outcome (I1), or its later outcome. An unknown unit moves from the order's
 * reservation to the unconfirmed units: it may be on the shelf, but is not sold.
 */
export async function applyOperationEntry(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: OperationEntry,
  { isLate = false }: ApplyOptions = {},
): Promise<void> {
  switch (entry.kind) {
    case 'operation.unknown': {
      const orders = await findOrders(tx, context, hubId, [entry])
      const order_id = orders.get(entry.order_id ?? '') ?? null
      const item_id = order_id === null ? null : entry.line_id
      const inserted = await tx.q
        .insertInto('unknown_operations')
        .values({
          hub_id: hubId,
          operation_id: entry.operation_id,
          device: entry.device,
          action: entry.action,
          reason: entry.reason,
          cabinet: entry.location?.cabinet ?? null,
          shelf: entry.location?.shelf ?? null,
          row: entry.location?.row ?? null,
          order_id,
          item_id,
          product_id: entry.product_id,
          started_at: Math.round(entry.started_at),
          at: Math.round(entry.at),
          settled_at: null,
          settled_by: null,
          happened: null,
        })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      const isNews = inserted.numInsertedOrUpdatedRows === 1n
      // A new store has found the operation in a controller's memory.
      if (!isNews && !isLate) await noteForgotten(tx, hubId, { of: [entry.operation_id], isForgotten: 0 })
      if (!isNews || order_id === null || item_id === null) return
      if (!isLate || (await unaccounted(tx, [order_id])).has(order_id))
        await markUnconfirmed(tx, order_id, item_id)
      return
    }
    case 'operation.settled':
      await settleOperation(tx, hubId, { ...entry, operationId: entry.operation_id })
  }
}

/**
 * Marks a unit as unconfirmed. Its reservation holds until the order ends, because the hub may find the unit in another
 * row.
 */
async function markUnconfirmed(tx: Tx, orderId: number, itemId: number): Promise<void> {
  const item = await lockItem(tx, orderId, itemId)
  await tx.q
    .updateTable('order_items')
    .set({ qty_doubtful: item.qty_doubtful + 1 })
    .where('id', '=', itemId)
    .execute()
}

/** Records whether an operation happened. If it was settled before, the first known outcome stays. */
export async function settleOperation(
  tx: Tx,
  hubId: number,
  settled: { operationId: string; by: 'sensor' | 'count' | 'person'; happened: boolean; at: number },
): Promise<void> {
  await tx.q
    .updateTable('unknown_operations')
    .set({
      settled_at: Math.round(settled.at),
      settled_by: settled.by,
      happened: settled.happened ? 1 : 0,
    })
    .where('hub_id', '=', hubId)
    .where('operation_id', '=', settled.operationId)
    .where('happened', 'is', null)
    .execute()
}

/** A hub has a new store, which knows nothing of the former store's open operations. */
export const forgetUnknown = (tx: Tx, hubId: number): Promise<void> =>
  noteForgotten(tx, hubId, { isForgotten: 1 })

/** Records whether the hub's store knows operations: these, or all open ones. */
async function noteForgotten(
  tx: Tx,
  hubId: number,
  { of, isForgotten }: { of?: readonly string[]; isForgotten: 0 | 1 },
): Promise<void> {
  await tx.q
    .updateTable('unknown_operations')
    .set({ is_forgotten: isForgotten })
    .where('hub_id', '=', hubId)
    .where((eb) => (of ? eb('operation_id', 'in', of) : eb('settled_at', 'is', null)))
    .execute()
}

/**
 * Applies a hub's list of its unknown operations. Any other operation that its store knows was settled, and the cloud
 * has lost the report. A listed operation is unknown, whatever the cloud recorded.
 */
export async function followUnknown(
  tx: Tx,
  hubId: number,
  unknown: readonly string[],
  at: number,
): Promise<void> {
  const known = await tx.q
    .selectFrom('unknown_operations')
    .select(['operation_id', 'settled_at', 'is_forgotten'])
    .where('hub_id', '=', hubId)
    .where((eb) =>
      eb.or([
        eb('settled_at', 'is', null),
        ...(unknown.length > 0 ? [eb('operation_id', 'in', unknown)] : []),
      ]),
    )
    .execute()
  const named = new Set(unknown)
  // Operations of an earlier store stay open until a sensor, a count or a person settles them: this store has never
  // known them (I1).
  const settled = known.filter((row) => !named.has(row.operation_id) && row.is_forgotten === 0)
  const reopened = known.filter((row) => named.has(row.operation_id) && row.settled_at !== null)
  const set = async (
    rows: readonly { operation_id: string }[],
    values: { settled_at: number | null; settled_by: 'hub' | null },
  ): Promise<void> => {
    if (rows.length === 0) return
    await tx.q
      .updateTable('unknown_operations')
      .set({ ...values, happened: null })
      .where('hub_id', '=', hubId)
      .where(
        'operation_id',
        'in',
        rows.map(({ operation_id }) => operation_id),
      )
      .execute()
  }
  await set(settled, { settled_at: Math.round(at), settled_by: 'hub' })
  await set(reopened, { settled_at: null, settled_by: null })
  if (unknown.length > 0) await noteForgotten(tx, hubId, { of: unknown, isForgotten: 0 })
}

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
