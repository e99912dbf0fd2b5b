import { QueuedOrder, type CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { Tx } from '../../platform/store/database.ts'
import { LAST_ACTIVE, parseBins } from './order-rows.ts'

type SnapshotOrders = Extract<CloudEntry, { kind: 'snapshot' }>['orders']

/** The orders that a hub has to do with, with what is known to have dropped: part of the snapshot for it. */
export async function snapshotOrders(tx: Tx, hubId: number): Promise<SnapshotOrders> {
  const orders = await tx.q
    .selectFrom('orders')
    .select(['id', 'processing_status', 'queued_order'])
    .where('hub_id', '=', hubId)
    .where('processing_status', '>=', OrderStatus.QUEUED)
    .where('processing_status', '<=', LAST_ACTIVE)
    .orderBy('queued_at')
    .orderBy('id')
    .execute()
  const snapshot: SnapshotOrders = []
  for (const order of orders) {
    const items = await tx.q
      .selectFrom('order_items')
      .select(['id', 'qty_dropped', 'bins'])
      .where('order_id', '=', order.id)
      .orderBy('id')
      .execute()
    snapshot.push({
      order: QueuedOrder.parse(JSON.parse(order.queued_order!)),
      status: order.processing_status,
      lines: items.map((item) => ({
        line_id: item.id,
        dropped: item.qty_dropped,
        bins: parseBins(item.bins),
      })),
    })
  }
  return snapshot
}
