import type { Updateable } from 'kysely'
import {
  OrderStatus,
  transition,
  type OrderCause,
  type TransitionResult,
} from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { rowUpdate } from '../../platform/store/statement.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { releaseAnnounced } from '../deals/redemptions.ts'
import { unreserve } from '../catalogue/reservations.ts'
import { changesBins, checkBins } from './bin-room.ts'
import { lockItems, lockOrder, ownerOfMoney, type OrderRow } from './order-rows.ts'
import type { RefundRow } from './payment-status.ts'
import type { EventType } from '../../../protocol/model/event-types.ts'
import { appendEvent } from '../../events/append-event.ts'
import { viewStation } from './order-view.ts'

/**
 * The only place that changes an order's status: by the table of `order-status.ts`, in the transaction of the cause.
 * `changes` are written only with a transition. The given row is updated too.
 */
export async function moveOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cause: OrderCause,
  changes: Updateable<Tables['orders']> = {},
): Promise<TransitionResult> {
  const step = transition(order.processing_status, cause)
  if (step.kind !== 'moved') return step
  const now = context.runtime.clock.now()
  const moved = {
    ...changes,
    processing_status: step.to,
    version: order.version + 1,
    updated_at: now,
    ...(step.to >= OrderStatus.COMPLETED ? { finished_at: now } : {}),
    ...(order.payer_network === null ? {} : { payer_network: null }),
    ...(isHandedOut(step.to) && order.collected_at === null ? { collected_at: now } : {}),
  }
  const updated = updateOrder(tx.q, order.id, moved)
  Object.assign(order, moved)
  tx.notify({ kind: 'order', orderId: order.id, hubId: order.hub_id })
  publishMove(tx, context, order)
  if (changesBins(step.to)) checkBins(tx, context, order.hub_id)
  await Promise.all([updated, scheduleDeadlines(tx, context, order)])
  return step
}

const isHandedOut = (status: OrderStatus): boolean =>
  status === OrderStatus.COLLECTING || status === OrderStatus.COMPLETED

const updateOrder = rowUpdate('orders')

/** Schedules the deadlines of an order in its present status; their handlers check whether the status still holds. */
export async function scheduleDeadlines(tx: Tx, { settings }: CloudContext, order: OrderRow): Promise<void> {
  const due = (kind: string, at: number): Promise<void> => schedule(tx, kind, order.id, at)
  const status: OrderStatus = order.processing_status
  switch (status) {
    case OrderStatus.NEW:
      await due('order.idle', order.touched_at + settings.idleOrderMs)
      await due('notice.expiring', order.touched_at + settings.idleOrderMs - settings.expiringNoticeMs)
      return
    case OrderStatus.QUEUED:
      await due('order.overdue', order.queued_at! + settings.startWithinMs + settings.prepareTimeoutMs)
      return
    case OrderStatus.READY:
      await due('notice.moved', order.updated_at)
      await due('notice.unclaimed', order.ready_at! + settings.unclaimedNoticeMs)
      await due('order.unclaimed', order.ready_at! + settings.unclaimedTimeoutMs)
      return
    case OrderStatus.EXPIRED:
      await due('order.expired', order.updated_at + settings.purgeExpiredMs)
      return
    case OrderStatus.PENDING_PAYMENT:
    case OrderStatus.PREPARING:
    case OrderStatus.COLLECTING:
    case OrderStatus.COMPLETED:
    case OrderStatus.CANCELLED:
      return
    case OrderStatus.TIMED_OUT:
    case OrderStatus.FAILED:
      await due('notice.moved', order.updated_at)
  }
}

/** Releases every unit that is still reserved for an order. */
export async function releaseReservations(tx: Tx, orderId: number): Promise<void> {
  const held = (await lockItems(tx, orderId)).filter(({ reserved }) => reserved > 0)
  if (held.length === 0) return
  await tx.q.updateTable('order_items').set({ reserved: 0 }).where('order_id', '=', orderId).execute()
  await unreserve(
    tx,
    held.map(({ product_id, reserved }) => ({ productId: product_id, quantity: reserved })),
  )
}

/** Removes a cart, under its lock. A cart with a payment attempt stays in the records. */
export async function removeCart(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  await releaseAnnounced(tx, order.id)
  const payment = await tx.q
    .selectFrom('payments')
    .select('id')
    .where('order_id', '=', order.id)
    .executeTakeFirst()
  if (payment) await moveOrder(tx, context, order, 'deleted')
  else await tx.q.deleteFrom('orders').where('id', '=', order.id).execute()
}

/** Due work of idle carts and of expired ones. */
export const deadlineWork = (context: CloudContext): WorkKinds => ({
  'order.idle': { run: ({ subject }) => expireIdle(context, Number(subject)) },
  'order.expired': { run: ({ subject }) => purgeExpired(context, Number(subject)) },
})

/**
 * Ends a cart that was idle for long. A cart with an open payment is skipped: the payment's own deadline makes it a
 * cart again, or a paid order.
 */
function expireIdle(context: CloudContext, orderId: number): Promise<Outcome> {
  const { db, runtime, settings } = context
  return db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    if (order?.processing_status !== OrderStatus.NEW) return done
    const idleAt = order.touched_at + settings.idleOrderMs
    if (idleAt > runtime.clock.now()) return { next: idleAt }
    await releaseAnnounced(tx, orderId)
    await moveOrder(tx, context, order, 'idle')
    return { next: null, affected: [orderId] }
  })
}

/**
 * Deletes an order that expired long ago without any payment attempt. An order that was merged into another one is
 * kept.
 */
async function purgeExpired({ db }: CloudContext, orderId: number): Promise<Outcome> {
  const purged = await db.kysely
    .deleteFrom('orders')
    .where('id', '=', orderId)
    .where('processing_status', '=', OrderStatus.EXPIRED)
    .where('merged_into', 'is', null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb.selectFrom('payments').select('payments.id').whereRef('payments.order_id', '=', 'orders.id'),
        ),
      ),
    )
    .returning('id')
    .execute()
  return { next: null, affected: purged.map(({ id }) => id) }
}

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
function publishMove(tx: Tx, context: CloudContext, order: OrderRow): void {
  const type = order.queued_at === null ? undefined : eventOf[order.processing_status]
  if (type !== undefined) publishOrder(tx, context, order, type, order.owner_id!)
}

/** Reports a refund to integrators, and to the customer if the customer gets money. */
export async function publishRefund(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  refund: Pick<RefundRow, 'id' | 'amount' | 'owner_id'>,
): Promise<void> {
  publishOrder(tx, context, order, 'order.refunded', ownerOfMoney(order, refund))
  if (refund.amount > 0) await schedule(tx, 'notice.refunded', refund.id, context.runtime.clock.now())
}

/**
 * Appends an event of an order. If an order passes several statuses in one transaction, each event shows its own
 * status. Consequences of a transition (refunds, the state of lines) are written by the end of the transaction.
 */
export function publishOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  type: OrderEvent,
  ownerId: number,
): void {
  const station = { ...order }
  appendEvent(tx, context, {
    type,
    hubId: order.hub_id,
    ownerId,
    data: () => viewStation(tx.q, context, station),
  })
}
