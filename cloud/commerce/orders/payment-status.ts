import { PAYMENT_UNDER_WAY } from '../../platform/store/tables/payments.ts'
import type { Selectable } from 'kysely'
import type { PaymentStatus } from '../../../protocol/contract/fields.ts'
import { countSale } from '../analytics/refresh-sales.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, statement } from '../../platform/store/statement.ts'

export type PaymentRow = Selectable<Tables['payments']>
export type RefundRow = Selectable<Tables['refunds']>

type Paid = Pick<PaymentRow, 'id' | 'status' | 'amount' | 'is_late'>
type RefundedMoney = Pick<RefundRow, 'payment_id' | 'status' | 'amount'>

/**
 * The payment status of an order, only from its payments (oldest first) and refunds (I6). Late money counts only if the
 * order was not paid otherwise.
 */
export function derivePaymentStatus(
  payments: readonly Paid[],
  refunds: readonly RefundedMoney[],
): PaymentStatus {
  const completed = payments.filter(({ status }) => status === 'completed')
  const inTime = completed.filter(({ is_late }) => is_late === 0)
  const live = payments.find(({ status }) => underWay.includes(status))
  if (inTime.length > 0) return refundStatus(inTime, refunds)
  if (live) return live.status
  if (completed.length > 0) return refundStatus(completed, refunds)
  return payments.at(-1)?.status ?? 'unpaid'
}

const underWay: readonly string[] = PAYMENT_UNDER_WAY

function refundStatus(payments: readonly Paid[], refunds: readonly RefundedMoney[]): PaymentStatus {
  const ids = new Set(payments.map(({ id }) => id))
  const paid = total(payments)
  const back = total(
    refunds.filter(({ payment_id, status }) => ids.has(payment_id) && status === 'succeeded'),
  )
  if (back === 0) return 'completed'
  return back < paid ? 'partially_refunded' : 'refunded'
}

const total = (rows: readonly { amount: number }[]): number =>
  rows.reduce((sum, { amount }) => sum + amount, 0)

/**
 * Computes and stores the status, and counts the sale. Call it after each change of a payment or a refund, under the
 * order's lock. The customer sees a change even if the status stays, so the order gets a new version.
 */
export async function refreshPaymentStatus(tx: Tx, orderId: number): Promise<PaymentStatus> {
  const { payments, refunds } = await booksOf(tx, orderId)
  const payment_status = derivePaymentStatus(payments, refunds)
  const [order] = await storeStatus(tx.q, { orderId, payment_status })
  tx.notify({ kind: 'order', orderId, hubId: order!.hub_id })
  if (payments.some(({ status, is_late }) => status === 'completed' && is_late === 0)) countSale(tx, orderId)
  return payment_status
}

const storeStatus = statement(
  (q, { orderId, payment_status }: { orderId: number; payment_status: PaymentStatus }) =>
    q
      .updateTable('orders')
      .set((eb) => ({ payment_status, version: eb('version', '+', 1) }))
      .where('id', '=', orderId)
      .returning('hub_id'),
)

/** The payments of an order, oldest first, and their refunds. */
export interface Books {
  payments: PaymentRow[]
  refunds: RefundedMoney[]
}

/** Reads the books of an order, under its lock. */
export async function booksOf(tx: Tx, orderId: number): Promise<Books> {
  const rows = await paymentsWithRefunds(tx.q, { orderId })
  return {
    payments: rows.filter(({ id }, index) => rows[index - 1]?.id !== id),
    refunds: rows.flatMap(({ id, back }): RefundedMoney[] =>
      back === null ? [] : [{ payment_id: id, status: 'succeeded', amount: back }],
    ),
  }
}

/** A row for each refund that succeeded, or one row for a payment without. */
const paymentsWithRefunds = statement((q, { orderId }: { orderId: number }) =>
  q
    .selectFrom('payments as p')
    .leftJoin('refunds as r', (join) =>
      join.onRef('r.payment_id', '=', 'p.id').on('r.status', '=', 'succeeded'),
    )
    .select(allOf('payments').map((column) => `p.${column}` as const))
    .select('r.amount as back')
    .where('p.order_id', '=', orderId)
    .orderBy('p.id'),
)

export async function readPaymentStatus(q: Queries, orderId: number): Promise<PaymentStatus> {
  const { payment_status } = await q
    .selectFrom('orders')
    .select('payment_status')
    .where('id', '=', orderId)
    .executeTakeFirstOrThrow()
  return payment_status
}
