import type { CloudContext } from '../../platform/context.ts'
import { lockItems, lockOrder, type OrderRow } from '../orders/order-rows.ts'
import { unschedule } from '../../platform/work/queue.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import {
  insertRefund,
  lineShareOf,
  paidPayment,
  refundable,
  type NewRefund,
  type RefundReason,
} from './refund-rows.ts'
import { nextUnits, takeShare } from './refund-shares.ts'

type UndeliveredReason = 'short' | 'timed_out' | 'failed'

/**
 * What was paid for and did not drop goes back without asking (contract §5): of each line the frozen share of the units
 * that are missing and not refunded yet. Under the order's lock, in the transaction of the report.
 */
export async function refundUndelivered(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  reason: UndeliveredReason,
  refusals = 0,
): Promise<void> {
  const payment = await paidPayment(tx, order.id)
  if (!payment || payment.amount === 0) return
  for (const item of await lockItems(tx, order.id)) {
    const units = item.qty - Math.min(item.qty, item.qty_dropped) - item.refunded_quantity
    if (units <= 0) continue
    const left = await refundable(tx, order, payment)
    const share = takeShare(left, nextUnits(await lineShareOf(tx, item), units))
    const refund = { payment, itemId: item.id, quantity: units, ...share, reason, refusals }
    if (left.amount > 0) await insertRefund(tx, context, order, refund)
  }
}

/** All that is left of an order's money goes back; undefined where nothing is. */
export async function refundRest(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  options: Pick<NewRefund, 'actor' | 'isInHand' | 'refusals' | 'requestKey'> = {},
): Promise<RefundRow | undefined> {
  const payment = await paidPayment(tx, order.id)
  if (!payment) return undefined
  const share = await refundable(tx, order, payment)
  if (share.amount === 0) return undefined
  const refund = { payment, itemId: null, quantity: 0, ...share, reason: 'cancelled' } as const
  return insertRefund(tx, context, order, { ...refund, ...options })
}

/** Money that its order can no longer take is refunded; it never revives the order (contract §5). */
export async function refundLate(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  refusals = 0,
): Promise<void> {
  const share = await refundable(tx, order, { ...payment, is_late: 1 })
  const refund = { payment, itemId: null, quantity: 0, ...share, reason: 'late_payment', refusals } as const
  if (share.amount > 0) await insertRefund(tx, context, order, refund)
}

/**
 * Another refund takes the place of one that the processor refused, for as much as is owed now: somebody may have given
 * it back by hand meanwhile.
 */
export async function replaceRefused(tx: Tx, context: CloudContext, refused: RefundRow): Promise<void> {
  const order = (await lockOrder(tx, refused.order_id))!
  // Of two that look at it at once one finds the work gone.
  if (!(await unschedule(tx, 'refund', refused.id))) return
  const refusals = refused.refusals + 1
  const reason = refused.reason as Exclude<RefundReason, 'customer'>
  switch (reason) {
    case 'short':
    case 'timed_out':
    case 'failed':
      return refundUndelivered(tx, context, order, reason, refusals)
    case 'cancelled':
      await refundRest(tx, context, order, { refusals })
      return
    case 'late_payment':
      return refundLate(tx, context, order, await paymentOf(tx, refused), refusals)
  }
}

function paymentOf(tx: Tx, refund: RefundRow): Promise<PaymentRow> {
  return tx.q.selectFrom('payments').selectAll().where('id', '=', refund.payment_id).executeTakeFirstOrThrow()
}
