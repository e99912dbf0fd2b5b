import type { QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { OrderPhase } from '../../journal/orders.ts'
import type { Context } from '../context.ts'

/** Takes an order into the journal: from then on it is this hub's to finish. One that is known already is left alone. */
export function acceptOrder(
  { journal, cloud }: Context,
  order: QueuedOrder,
  phase: OrderPhase,
  inherited?: { bins: number[]; dropped: ReadonlyMap<number, number> },
): void {
  if (journal.orders.find(order.order_id)) return
  journal.orders.insert(
    {
      id: order.order_id,
      phase,
      reserved_bin: order.bin,
      open_when_ready: order.open_when_ready ? 1 : 0,
      start_by: order.start_by,
      bins: JSON.stringify(inherited?.bins ?? []),
      received_at: cloud.now(),
    },
    order.lines.map((line) => ({
      order_id: order.order_id,
      line_id: line.line_id,
      product_id: line.product_id,
      quantity: line.quantity,
      known_dropped: Math.min(line.quantity, inherited?.dropped.get(line.line_id) ?? 0),
    })),
  )
}

/** Whether this store's own history includes the epoch under which the order was queued. */
export const isOwn = ({ outbox }: Context, order: QueuedOrder): boolean =>
  order.hub_epoch !== null && outbox.knownEpochs().includes(order.hub_epoch)

/** Cancels an order that has not begun, and says so. Returns why not otherwise. */
export function cancelOrder(context: Context, orderId: number): CommandReason | undefined {
  const { journal, cloud, ledger } = context
  const order = journal.orders.find(orderId)
  if (order?.phase === 'cancelled') return undefined
  if (!order) return 'not_found'
  if (order.phase !== 'queued') return 'too_late'
  journal.orders.end(orderId, 'cancelled', cloud.now(), null)
  ledger.report({ kind: 'order.cancelled', order_id: orderId })
  return undefined
}
