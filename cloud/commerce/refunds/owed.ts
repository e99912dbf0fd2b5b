import type { Queries } from '../../platform/store/database.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import { leftOf, takeShare } from './shares.ts'

type KnownRefund = Pick<
  RefundRow,
  | 'id'
  | 'payment_id'
  | 'item_id'
  | 'quantity'
  | 'amount'
  | 'tax'
  | 'reason'
  | 'status'
  | 'failure_reason'
  | 'failed_after'
  | 'settles'
>
type KnownPayment = Pick<PaymentRow, 'id' | 'amount' | 'is_late'>

/** Refunds that the processor or the bank of the cardholder made. */
export const isByProcessor = ({ reason }: Pick<RefundRow, 'reason'>): boolean =>
  reason === 'processor' || reason === 'dispute'

/** Refunds that the service owes without a request. */
export const isDue = (refund: Pick<RefundRow, 'reason'>): boolean =>
  refund.reason !== 'customer' && !isByProcessor(refund)

/**
 * Whether a later refund takes the place of a failed one. It settles the failed refund, or it repeats it: it belongs to
 * the same line (or to the order as a whole) and was recorded after the failure. A smaller refund that a person
 * requests does not repeat a refund that the service owes.
 */
function replaces(later: KnownRefund, failed: KnownRefund): boolean {
  if (later.settles !== null) return later.settles === failed.id
  if (isByProcessor(later) || later.item_id !== failed.item_id) return false
  if (later.id <= (failed.failed_after ?? failed.id)) return false
  return later.amount >= failed.amount || isDue(later) || !isDue(failed)
}

/**
 * The failed refunds that the customer is still owed, oldest first, each with the amount that is owed. The amounts
 * never exceed the part of the payment that has not been refunded and is not under way.
 */
export const owedRefunds = <Refund extends KnownRefund>(
  order: Pick<OrderRow, 'tax_total'>,
  payments: readonly KnownPayment[],
  refunds: readonly Refund[],
): Refund[] =>
  payments.flatMap((payment) => {
    const own = refunds.filter(({ payment_id }) => payment_id === payment.id)
    let left = leftOf(
      order,
      payment,
      own.filter(({ status }) => status !== 'failed'),
    )
    return own
      .filter((one) => one.status === 'failed' && !isByProcessor(one))
      .filter((one) => !own.some((later) => replaces(later, one)))
      .flatMap((one) => {
        const share = takeShare(left, one)
        left = { amount: left.amount - share.amount, tax: left.tax - share.tax }
        return share.amount > 0 ? [{ ...one, ...share }] : []
      })
  })

/** The refunds of an order, oldest first, and its owed refunds. */
export async function readOwed(
  q: Queries,
  order: Pick<OrderRow, 'id' | 'tax_total'>,
): Promise<{ payments: PaymentRow[]; refunds: RefundRow[]; owed: RefundRow[] }> {
  const refunds = await q
    .selectFrom('refunds')
    .selectAll()
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  if (refunds.every(({ status }) => status !== 'failed')) return { payments: [], refunds, owed: [] }
  const payments = await q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', order.id)
    .where('status', '=', 'completed')
    .orderBy('id')
    .execute()
  return { payments, refunds, owed: owedRefunds(order, payments, refunds) }
}
