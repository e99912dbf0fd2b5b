import { OrderStatus, type OrderCause, type TransitionResult } from '../../../protocol/model/order-status.ts'
import { enqueue } from '../../gateway/outbox.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { releaseRedemptions } from '../deals/redemptions.ts'
import type { Cancellation } from '../orders/cancel-at-hub.ts'
import { moveOrder, releaseReservations } from '../orders/move-order.ts'
import { lockItems, type OrderRow } from '../orders/order-rows.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import {
  insertRefund,
  insertRefunds,
  liveRefunds,
  paidPayment,
  refundable,
  type NewRefund,
} from './refunds.ts'
import { leftOf, lineShareOf, nextUnits, takeShare } from './shares.ts'

/**
 * What an order ends in that was paid and is not delivered whole: its stock is free again, and its money goes back without
 * asking.
 */

/** The order was cancelled before anything moved: its stock is free and all of its money goes back, by the refund returned. */
export async function cancelOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  by: Pick<NewRefund, 'actor' | 'runsAtOnce' | 'requestKey'> = {},
): Promise<RefundRow | undefined> {
  const step = await moveOrder(tx, context, order, 'cancelled')
  if (step.kind !== 'moved') return undefined
  await releaseRedemptions(tx, order.id)
  await releaseReservations(tx, order.id)
  return refundRest(tx, context, order, by)
}

/**
 * A person cancels a QUEUED order. `cancellation` is the hub's answer; `too_late` never comes here. A hub that did not agree,
 * because it is silent or offline, gets the cancellation by its stream, in the same transaction: it does not start the order
 * afterwards. If it had started before it was asked, nobody can open the bin.
 */
export async function cancelQueued(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cancellation: Exclude<Cancellation, 'too_late'>,
  by: Pick<NewRefund, 'actor' | 'requestKey'>,
): Promise<RefundRow | undefined> {
  const refund = await cancelOrder(tx, context, order, { ...by, runsAtOnce: true })
  if (cancellation !== 'cancelled')
    await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.uuid })
  return refund
}

/**
 * The hub of an order is retired: nobody collects the order. It ends where it stands, and all of its money goes back, also
 * for units that lie in a bin.
 */
export async function endRetired(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  by: Pick<NewRefund, 'actor'>,
): Promise<void> {
  if (order.processing_status === OrderStatus.QUEUED) await cancelOrder(tx, context, order, by)
  else {
    const step = await moveOrder(tx, context, order, 'hub_failed', { failure_reason: 'hub_retired' })
    if (step.kind !== 'moved') return
    await releaseReservations(tx, order.id)
    await releaseRedemptions(tx, order.id)
    await refundRest(tx, context, order, by)
  }
  await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.uuid })
}

/** The order ended before READY: what is not known to have dropped goes back, stock and money. */
export async function endUndelivered(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cause: Extract<OrderCause, 'preparation_timeout' | 'hub_failed'>,
  changes: { failure_reason: string; bins?: string },
): Promise<TransitionResult> {
  const step = await moveOrder(tx, context, order, cause, changes)
  if (step.kind !== 'moved') return step
  // First, as it locks the lines: a unit may be reported at this moment.
  await releaseReservations(tx, order.id)
  if (await isEmptyHanded(tx, order.id)) await releaseRedemptions(tx, order.id)
  await refundUndelivered(tx, context, order, cause === 'hub_failed' ? 'failed' : 'timed_out')
  return step
}

/** Nothing of an order has dropped. */
async function isEmptyHanded(tx: Tx, orderId: number): Promise<boolean> {
  const dropped = await tx.q
    .selectFrom('order_items')
    .select('id')
    .where('order_id', '=', orderId)
    .where('qty_dropped', '>', 0)
    .executeTakeFirst()
  return dropped === undefined
}

type UndeliveredReason = 'short' | 'timed_out' | 'failed' | 'cancelled'

/**
 * What was paid for and did not drop goes back without asking: of each line the frozen share of the units that are missing,
 * less what the line has returned. That was less than it should be where other refunds had left no more of the payment; should
 * one of those fail, the rest is owed. Units that cost nothing are on record, too: they were not sold. Under the order's lock,
 * in the transaction of the report.
 */
export async function refundUndelivered(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  reason: UndeliveredReason,
  refusals = 0,
): Promise<void> {
  const payment = await paidPayment(tx, order.id)
  if (!payment) return
  const isFree = payment.amount === 0
  const items = await lockItems(tx, order.id)
  const refunds = await liveRefunds(tx, payment.id)
  let left = leftOf(order, payment, refunds)
  const owed: NewRefund[] = []
  for (const item of items) {
    const units = item.qty - Math.min(item.qty, item.qty_dropped) - item.refunded_quantity
    const share = takeShare(left, nextUnits(lineShareOf(item, refunds), units))
    if ((left.amount === 0 && !isFree) || (units <= 0 && share.amount === 0)) continue
    owed.push({ itemId: item.id, quantity: Math.max(0, units), ...share, reason, refusals })
    left = { amount: left.amount - share.amount, tax: left.tax - share.tax }
  }
  await insertRefunds(tx, context, order, payment, owed)
}

/** What an order that has ended as it has is owed still: its money can be given back again, or was refused before. */
export async function refundOwed(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  refusals = 0,
): Promise<void> {
  switch (order.processing_status) {
    case OrderStatus.CANCELLED:
      await refundRest(tx, context, order, { refusals })
      return
    case OrderStatus.TIMED_OUT:
      return refundUndelivered(tx, context, order, 'timed_out', refusals)
    case OrderStatus.FAILED: {
      // What was left in its bin is not owed; what never came there is.
      const reason = order.failure_reason === 'unclaimed' ? 'short' : 'failed'
      return refundUndelivered(tx, context, order, reason, refusals)
    }
    case OrderStatus.READY:
    case OrderStatus.COLLECTING:
    case OrderStatus.COMPLETED:
      return refundUndelivered(tx, context, order, 'short', refusals)
    case OrderStatus.NEW:
    case OrderStatus.PENDING_PAYMENT:
    case OrderStatus.QUEUED:
    case OrderStatus.PREPARING:
    case OrderStatus.EXPIRED:
  }
}

/** All that is left of an order's money goes back; undefined where nothing is, as of one that was free. */
async function refundRest(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  options: RefundOptions,
): Promise<RefundRow | undefined> {
  const payment = await paidPayment(tx, order.id)
  if (payment?.amount === 0) await refundUndelivered(tx, context, order, 'cancelled')
  return payment && refundWhole(tx, context, order, payment, 'cancelled', options)
}

/** Money that its order can no longer take is refunded; it never revives the order. */
export const refundLate = (
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  options: RefundOptions = {},
): Promise<RefundRow | undefined> =>
  refundWhole(tx, context, order, { ...payment, is_late: 1 }, 'late_payment', options)

type RefundOptions = Pick<NewRefund, 'actor' | 'runsAtOnce' | 'refusals' | 'requestKey'>

async function refundWhole(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  reason: 'cancelled' | 'late_payment',
  options: RefundOptions,
): Promise<RefundRow | undefined> {
  const share = await refundable(tx, order, payment)
  if (share.amount === 0) return undefined
  return insertRefund(tx, context, order, {
    payment,
    itemId: null,
    quantity: 0,
    ...share,
    reason,
    ...options,
  })
}
