import type { CloudContext } from '../context.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../store/database.ts'
import { refreshPaymentStatus, type PaymentRow, type RefundRow } from './payment-status.ts'
import type { ProcessorRefund } from './processor.ts'

export type RefundReason = 'customer' | 'short' | 'timed_out' | 'failed' | 'cancelled' | 'late_payment'

/** What can still be given back of a payment, and of its order's tax. Cents. */
export interface Refundable {
  amount: number
  tax: number
}

/** The payment that an order's money goes back to, or undefined where nothing was paid in time. */
export function paidPayment(tx: Tx, orderId: number): Promise<PaymentRow | undefined> {
  return tx.q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('status', '=', 'completed')
    .where('is_late', '=', 0)
    .executeTakeFirst()
}

/** A refund that waits for the processor counts as given back: it is never promised twice. */
export async function refundable(tx: Tx, order: OrderRow, payment: PaymentRow): Promise<Refundable> {
  const refunds = await tx.q
    .selectFrom('refunds')
    .select(['amount', 'tax'])
    .where('payment_id', '=', payment.id)
    .where('status', '<>', 'failed')
    .execute()
  return refunds.reduce((rest, { amount, tax }) => ({ amount: rest.amount - amount, tax: rest.tax - tax }), {
    amount: payment.amount,
    tax: order.tax_total ?? 0,
  })
}

export interface NewRefund {
  payment: PaymentRow
  itemId: number | null
  quantity: number
  amount: number
  tax: number
  reason: RefundReason
}

/**
 * Records a refund. One of a card payment waits for the processor (`execute-refund.ts`); one of money that an integrator
 * took is a matter of the ledger alone (contract §5).
 */
export async function insertRefund(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  { payment, itemId, ...refund }: NewRefund,
): Promise<RefundRow> {
  const now = runtime.clock.now()
  const isLedgerOnly = payment.processor === 'external' || payment.processor === 'none'
  const row = await tx.q
    .insertInto('refunds')
    .values({
      ...refund,
      order_id: payment.order_id,
      payment_id: payment.id,
      item_id: itemId,
      status: isLedgerOnly ? 'succeeded' : 'pending',
      processor_ref: null,
      failure_reason: null,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await refreshRefunds(tx, payment.order_id)
  if (!isLedgerOnly) tx.refundDue()
  return row
}

/** What the processor said of a refund; a second time nothing happens. Under the order's lock. */
export async function applyRefundOutcome(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  refundId: number,
  outcome: ProcessorRefund,
): Promise<void> {
  const updated = await tx.q
    .updateTable('refunds')
    .set({
      status: outcome.status,
      processor_ref: outcome.ref,
      failure_reason: outcome.failureReason,
      updated_at: runtime.clock.now(),
    })
    .where('id', '=', refundId)
    .where('status', '=', 'pending')
    .returning('order_id')
    .executeTakeFirst()
  if (updated) await refreshRefunds(tx, updated.order_id)
}

/** Brings what is derived from refunds up to date: the payment status, and each line's refunded units. */
async function refreshRefunds(tx: Tx, orderId: number): Promise<void> {
  await refreshPaymentStatus(tx, orderId)
  const items = await tx.q
    .selectFrom('order_items')
    .select(['id', 'qty', 'refunded_quantity'])
    .where('order_id', '=', orderId)
    .orderBy('id')
    .execute()
  const refunds = await tx.q
    .selectFrom('refunds')
    .innerJoin('payments', 'payments.id', 'refunds.payment_id')
    .select(['refunds.item_id', 'refunds.quantity', 'refunds.amount'])
    .where('refunds.order_id', '=', orderId)
    .where('refunds.status', '<>', 'failed')
    .where('payments.is_late', '=', 0)
    .execute()
  const payment = await paidPayment(tx, orderId)
  const givenBack = refunds.reduce((sum, { amount }) => sum + amount, 0)
  const isWhole = payment !== undefined && payment.amount > 0 && givenBack >= payment.amount
  for (const item of items) {
    const units = refunds.reduce((sum, refund) => sum + (refund.item_id === item.id ? refund.quantity : 0), 0)
    const refunded = isWhole ? item.qty : Math.min(item.qty, units)
    if (refunded !== item.refunded_quantity)
      await tx.q
        .updateTable('order_items')
        .set({ refunded_quantity: refunded })
        .where('id', '=', item.id)
        .execute()
  }
}
