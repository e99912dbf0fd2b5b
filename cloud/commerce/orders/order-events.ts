import type { EventType } from '../../../protocol/model/event-types.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { appendEvent } from '../../events/append-event.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import type { OrderRow } from './order-rows.ts'
import { viewStation } from './order-view.ts'

type OrderEvent = Extract<EventType, `order.${string}` | `payment.${string}`>

/** The event of a paid order's arrival at a status. */
const eventOf: Partial<Record<OrderStatus, OrderEvent>> = {
  [OrderStatus.QUEUED]: 'order.paid',
  [OrderStatus.READY]: 'order.ready',
  [OrderStatus.COLLECTING]: 'order.collecting',
  [OrderStatus.COMPLETED]: 'order.completed',
  [OrderStatus.CANCELLED]: 'order.cancelled',
  [OrderStatus.TIMED_OUT]: 'order.timed_out',
  [OrderStatus.FAILED]: 'order.failed',
}

/** Reports a transition. A cart that is not paid yet, or that its customer deletes, has no events. */
export function publishMove(tx: Tx, context: CloudContext, order: OrderRow): void {
  const type = order.queued_at === null ? undefined : eventOf[order.processing_status]
  if (type !== undefined) publishOrder(tx, context, order, type)
}

/** Reports a refund to integrators, and to the customer if the customer gets money. */
export async function publishRefund(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  refund: { id: number; amount: number },
): Promise<void> {
  publishOrder(tx, context, order, 'order.refunded')
  if (refund.amount > 0) await schedule(tx, 'notice.refunded', refund.id, context.runtime.clock.now())
}

/**
 * Appends an event of an order. If an order passes several statuses in one transaction, each event shows its own
 * status. Consequences of a transition (refunds, the state of lines) are written by the end of the transaction.
 */
export function publishOrder(tx: Tx, context: CloudContext, order: OrderRow, type: OrderEvent): void {
  const station = { ...order }
  appendEvent(tx, context, {
    type,
    hubId: order.hub_id,
    ...(order.owner_id !== null && { ownerId: order.owner_id }),
    data: () => viewStation(tx.q, context, station),
  })
}
