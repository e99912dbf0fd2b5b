import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { settlePoints } from '../loyalty/points-ledger.ts'
import type { ItemRow, OrderRow } from '../orders/order-rows.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import type { Tx } from '../../platform/store/database.ts'
import { creditRefund } from '../wallet/wallet-ledger.ts'
import { refreshPaymentStatus, type PaymentRow, type RefundRow } from '../orders/payment-status.ts'
import { WALLET } from '../processors/payment-methods.ts'
import type { ProcessorRefund } from '../processors/processor.ts'
import type { LineShare, Share } from './refund-shares.ts'

export type RefundReason = 'customer' | 'short' | 'timed_out' | 'failed' | 'cancelled' | 'late_payment'

/** Who has asked for what follows from what happened. */
export const SERVICE = 'service'

type Part = Pick<CloudContext, 'runtime' | 'settings'>

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

/**
 * What can still be given back of a payment. A refund that waits for the processor counts as given back: it is never
 * promised twice. Late money has no tax in it: its order was never sold.
 */
export async function refundable(
  tx: Tx,
  order: Pick<OrderRow, 'tax_total'>,
  payment: PaymentRow,
): Promise<Share> {
  const refunds = await tx.q
    .selectFrom('refunds')
    .select(['amount', 'tax'])
    .where('payment_id', '=', payment.id)
    .where('status', '<>', 'failed')
    .execute()
  return refunds.reduce((left, { amount, tax }) => ({ amount: left.amount - amount, tax: left.tax - tax }), {
    amount: payment.amount,
    tax: payment.is_late === 1 ? 0 : (order.tax_total ?? 0),
  })
}

/** A frozen line, with what its own refunds have returned. */
export async function lineShareOf(tx: Tx, item: ItemRow): Promise<LineShare> {
  const refunds = await tx.q
    .selectFrom('refunds')
    .select(['amount', 'tax'])
    .where('item_id', '=', item.id)
    .where('status', '<>', 'failed')
    .execute()
  const returned = refunds.reduce(
    (sum, { amount, tax }) => ({ amount: sum.amount + amount, tax: sum.tax + tax }),
    { amount: 0, tax: 0 },
  )
  return { qty: item.qty, net: item.net!, tax: item.tax!, refundedUnits: item.refunded_quantity, returned }
}

export interface NewRefund extends Share {
  payment: PaymentRow
  /** The line it is for, or null for an amount of the whole order. */
  itemId: number | null
  quantity: number
  reason: RefundReason
  /** Who asked for it; the service itself where absent. */
  actor?: string
  /** Whoever asked carries it out at once: due work comes in only where that has failed. */
  isInHand?: boolean
  requestKey?: string | null
  /** How many refunds of this money the processor has refused before. */
  refusals?: number
}

/**
 * Records a refund, under its order's lock. One of a card payment waits for the processor (`execute-refund.ts`); one of
 * money that an integrator took, or that came from the wallet, is done with this (contract §5).
 */
export async function insertRefund(
  tx: Tx,
  context: Part,
  order: OrderRow,
  { payment, itemId, actor = SERVICE, isInHand = false, requestKey = null, ...refund }: NewRefund,
): Promise<RefundRow> {
  const now = context.runtime.clock.now()
  const isDone = payment.processor === 'external' || payment.processor === WALLET || refund.amount === 0
  const dueAt = isInHand ? now + context.settings.paymentRecheckMs : now
  const row = await tx.q
    .insertInto('refunds')
    .values({
      ...refund,
      order_id: payment.order_id,
      payment_id: payment.id,
      item_id: itemId,
      status: isDone ? 'succeeded' : 'pending',
      processor_ref: null,
      failure_reason: null,
      actor,
      request_key: requestKey,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  if (isDone && payment.processor === WALLET && row.amount > 0)
    await creditRefund(tx, context, payment.user_id, row)
  if (isDone) await auditRefund(tx, context, order, row)
  await refreshRefunds(tx, context, order)
  if (!isDone) await schedule(tx, 'refund', row.id, dueAt)
  return row
}

/**
 * What the processor said of a refund, under its order's lock: the answer to a call, or an event. A second time nothing
 * happens. A refund that had succeeded may fail later (the card's bank sends the money back); one that failed is done.
 */
export async function applyRefundOutcome(
  tx: Tx,
  context: Part,
  order: OrderRow,
  refundId: number,
  outcome: ProcessorRefund,
): Promise<void> {
  const { runtime, settings } = context
  const now = runtime.clock.now()
  const refund = await tx.q
    .selectFrom('refunds')
    .selectAll()
    .where('id', '=', refundId)
    .executeTakeFirstOrThrow()
  const { status, ref, failureReason } = outcome
  const isNews = refund.status === 'pending' || (refund.status === 'succeeded' && status === 'failed')
  if (!isNews) return
  const dueAt =
    status === 'pending'
      ? now + settings.paymentRecheckMs
      : status === 'failed'
        ? retryAt(refund, now, settings)
        : null
  const known = {
    status,
    processor_ref: refund.processor_ref ?? ref,
    failure_reason: failureReason,
    updated_at: now,
  }
  await tx.q.updateTable('refunds').set(known).where('id', '=', refundId).execute()
  if (dueAt === null) await unschedule(tx, 'refund', refundId)
  else await schedule(tx, 'refund', refundId, dueAt)
  if (status === 'pending') return
  await auditRefund(tx, context, order, { ...refund, ...known }, dueAt)
  await refreshRefunds(tx, context, order)
}

/** When money that the service owes is sent again after the processor refused to. What somebody asked for is theirs to repeat. */
function retryAt(
  { reason, refusals }: RefundRow,
  now: number,
  { refundRetries, refundRetryMs }: CloudContext['settings'],
): number | null {
  return reason === 'customer' || refusals >= refundRetries ? null : now + refundRetryMs * 2 ** refusals
}

/** Whatever somebody asked for, and whatever was refused, is on the owner's record. */
export async function auditRefund(
  tx: Tx,
  { runtime }: Pick<Part, 'runtime'>,
  order: OrderRow,
  refund: RefundRow,
  nextAttemptAt: number | null = null,
): Promise<void> {
  if (refund.actor === SERVICE && refund.status !== 'failed') return
  await appendAudit(tx.q, runtime, {
    actor: refund.actor,
    action: refund.item_id === null ? 'orders.refund' : 'orders.refund_item',
    hubId: order.hub_id,
    object: `order-${order.id}`,
    result: refund.status,
    detail: {
      refund_id: refund.id,
      amount: refund.amount,
      reason: refund.reason,
      ...(refund.item_id !== null && { item_id: refund.item_id, quantity: refund.quantity }),
      ...(refund.status === 'failed' && {
        failure_reason: refund.failure_reason,
        next_attempt_at: nextAttemptAt,
      }),
    },
  })
}

/** Brings what is derived from refunds up to date: payment status, each line's refunded units, and points. */
async function refreshRefunds(tx: Tx, context: Part, order: OrderRow): Promise<void> {
  await refreshPaymentStatus(tx, order.id)
  const items = await tx.q
    .selectFrom('order_items')
    .select(['id', 'qty', 'refunded_quantity'])
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  const payment = await paidPayment(tx, order.id)
  const refunds = payment
    ? await tx.q
        .selectFrom('refunds')
        .select(['item_id', 'quantity', 'amount'])
        .where('payment_id', '=', payment.id)
        .where('status', '<>', 'failed')
        .execute()
    : []
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
  await settlePoints(tx, context, order)
}
