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
 * Ends paid orders that are not delivered in full: releases their stock and refunds their money without a
 * request.
 */

/**
 * Ends an order that was cancelled before any dispense: releases its stock and refunds all of its money.
 * Returns the refund.
 */
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
 * A person cancels a QUEUED order. `cancellation` is the hub's answer, never `too_late`. A hub that did not
 * agree (silent or offline) gets the cancellation through its stream, in the same transaction. It then does
 * not start the order. If it had already started, the bin can no longer be opened.
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
 * Ends an order of a retired hub in any status, because the customer cannot collect it. All of its money is
 * refunded, including the money for units that lie in a bin.
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

/** Ends an order before READY: releases the stock of units without a known drop and refunds them. */
export async function endUndelivered(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cause: Extract<OrderCause, 'preparation_timeout' | 'hub_failed'>,
  changes: { failure_reason: string; bins?: string },
): Promise<TransitionResult> {
  const step = await moveOrder(tx, context, order, cause, changes)
  if (step.kind !== 'moved') return step
  // This comes first because it locks the lines: a hub may report a unit at this moment.
  await releaseReservations(tx, order.id)
  if (await isEmptyHanded(tx, order.id)) await releaseRedemptions(tx, order.id)
  await refundUndelivered(tx, context, order, cause === 'hub_failed' ? 'failed' : 'timed_out')
  return step
}

/** True if no unit of the order was dispensed. */
async function isEmptyHanded(tx: Tx, orderId: number): Promise<boolean> {
  const dropped = await tx.q
    .selectFrom('order_items')
    .select('id')
    .where('order_id', '=', orderId)
    .where('qty_dropped', '>', 0)
    .executeTakeFirst()
  return dropped === undefined
}

/** All money of an order has been refunded: units that its hub has not started to dispense stay on the shelf. */
export async function stopRefunded(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  if (order.processing_status === OrderStatus.QUEUED) await cancelOrder(tx, context, order)
  await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.uuid })
}

type UndeliveredReason = 'short' | 'timed_out' | 'failed' | 'cancelled'

/**
 * Refunds paid units that were not dispensed.
 *
 * - Each line returns the frozen share of its missing units, less the money that it has already returned.
 * - The refund is smaller if other refunds left less of the payment. If such a refund fails, the rest is
 *   owed.
 * - Free units are recorded too, because they were not sold.
 *
 * Call it under the order's lock, in the transaction of the report.
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

/**
 * Refunds the money that an ended order is still owed, when its money is available again or a refund was
 * refused before.
 */
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
      // Units left in the bin are not owed; units that never reached the bin are.
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

/** Refunds the rest of an order's money. Undefined if nothing is left, as for a free order. */
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

/** Refunds money that its order can no longer take; the order stays ended. */
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
