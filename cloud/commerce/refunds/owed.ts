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

/** Whether a later refund is for the same line (or for the order as a whole), and was recorded after the failure. */
const repeats = (later: KnownRefund, failed: KnownRefund): boolean =>
  later.item_id === failed.item_id && later.id > (failed.failed_after ?? failed.id)

/**
 * The failed refunds of a payment, oldest first, less what later refunds have taken over. A settlement takes over its failed
 * refund as a whole. A repetition takes over at most its own amount, whatever becomes of it: if it fails, it is owed itself. The
 * service computes a refund that it owes from all that is missing, so it takes over its own earlier ones as a whole.
 */
function notTakenOver<Refund extends KnownRefund>(refunds: readonly Refund[]): Refund[] {
  let open: Refund[] = []
  for (const later of refunds.filter((one) => !isByProcessor(one))) {
    let most = later.amount
    open = open.flatMap((failed) => {
      if (later.settles !== null ? later.settles !== failed.id : !repeats(later, failed)) return [failed]
      const isWhole = later.settles !== null || (isDue(later) && isDue(failed))
      const taken = isWhole ? failed.amount : Math.min(most, failed.amount)
      most = Math.max(0, most - taken)
      return taken < failed.amount ? [lessOf(failed, later, taken)] : []
    })
    if (later.status === 'failed') open.push(later)
  }
  return open
}

/** A failed refund without the amount that a later one has taken over, and without its units and its tax. */
function lessOf<Refund extends KnownRefund>(failed: Refund, later: KnownRefund, taken: number): Refund {
  const amount = failed.amount - taken
  const less = (whole: number, part: number): number =>
    Math.max(0, whole - Math.round((part * taken) / later.amount))
  return {
    ...failed,
    amount,
    tax: Math.min(amount, less(failed.tax, later.tax)),
    quantity: less(failed.quantity, later.quantity),
  }
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
    return notTakenOver(own).flatMap((one) => {
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
  const payments = await completedPayments(q, order.id)
  return { payments, refunds, owed: owedRefunds(order, payments, refunds) }
}

/** The payments of an order that took money, oldest first. */
export const completedPayments = (q: Queries, orderId: number): Promise<PaymentRow[]> =>
  q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('status', '=', 'completed')
    .orderBy('id')
    .execute()
