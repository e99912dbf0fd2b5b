import { appendAudit } from '../../platform/audit/audit.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Tx } from '../../platform/store/database.ts'
import { isScheduled, unschedule } from '../../platform/work/queue.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { readOperation, workOf } from '../money/operations.ts'
import { isAtHub, lockItems, lockOrderAgain, requireOrderOf, type OrderRow } from '../orders/order-rows.ts'
import { readPaymentStatus, type PaymentRow, type RefundRow } from '../orders/payment-status.ts'
import { EXTERNAL, WALLET } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { refunds } from './execute-refund.ts'
import { completedPayments, readOwed } from './owed.ts'
import { EXTERNAL_REFUNDS, insertRefunds, refundable } from './refunds.ts'
import { stopRefunded } from './undelivered.ts'

/** Failed refunds that a person has paid to the customer outside of the service: in cash, or by a bank transfer. */
export const settlementHandlers = (services: MoneyServices): Handlers<'owner.orders.settle_refunds'> => ({
  async 'owner.orders.settle_refunds'({ params: { order_id: orderId }, body, credential }) {
    const { refund_ids: ids, amount, reason } = body
    const { context } = services
    await requireOrderOf(context.db.kysely, credential, orderId)
    const settled = { ids: [...new Set(ids)], amount, reason, actor: credential.actor }
    return context.db.transact(async (tx) => {
      const { currency } = await settleRefunds(tx, services, orderId, settled)
      const new_status = await readPaymentStatus(tx.q, orderId)
      return { success: true, order_id: orderId, new_status, settled_ids: settled.ids, amount, currency }
    })
  },
})

interface Settlement {
  /** The refunds, each once. */
  ids: readonly number[]
  /** Cents that the customer got for all of them. */
  amount: number
  /** How the person paid. */
  reason: string
  actor: string
}

/**
 * Books failed refunds as paid outside of the service: each gets a refund that moves no money and takes its place. The
 * service does not retry them. The order's lock makes a settlement and a retry exclude each other. If the retry comes
 * first, its refund takes the place of the failed one. Otherwise the retry finds nothing to do.
 *
 * A pending refund at a former processor is booked like a failed one: the service cannot ask that processor.
 *
 * Throws `order_state_conflict` in two cases:
 *
 * - A refund is not owed (any more).
 * - The service does not know yet whether the processor has already refunded the money.
 *
 * Throws `invalid_amount` if another amount is owed.
 */
export async function settleRefunds(
  tx: Tx,
  services: MoneyServices,
  orderId: number,
  { ids, amount, reason, actor }: Settlement,
): Promise<OrderRow> {
  const { context, processor } = services
  const order = await lockOrderAgain(tx, orderId)
  const { refunds: all, owed: failed } = await readOwed(tx.q, order)
  const payments = await completedPayments(tx.q, orderId)
  const former = payments.filter((payment) => ![processor.name, EXTERNAL, WALLET].includes(payment.processor))
  const isFormer = ({ payment_id }: RefundRow): boolean => former.some(({ id }) => id === payment_id)
  const owed = [...failed, ...all.filter((refund) => refund.status === 'pending' && isFormer(refund))]
  const notOwed = ids.filter((id) => !owed.some((refund) => refund.id === id))
  if (notOwed.length > 0)
    throw new ApiError('order_state_conflict', 'A refund is not owed, or it is under way.', {
      not_owed: notOwed,
      owed_ids: owed.map(({ id }) => id),
    })
  const settled = owed.filter(({ id }) => ids.includes(id))
  for (const refund of settled)
    if (!isFormer(refund) && (await isScheduled(tx.q, EXTERNAL_REFUNDS, refund.payment_id)))
      throw new ApiError('order_state_conflict', 'The service is asking the processor what it has refunded.')
  const sum = settled.reduce((cents, refund) => cents + refund.amount, 0)
  if (sum !== amount)
    throw ApiError.at(['body', 'amount'], 'invalid_amount', { owed: sum }, 'Another amount is owed.')
  for (const payment of payments) await bookSettled(tx, services, { order, payment, settled, actor })
  for (const id of ids) await unschedule(tx, workOf('refund'), id)
  for (const { id } of former) await unschedule(tx, EXTERNAL_REFUNDS, id)
  await appendAudit(tx.q, context.runtime, {
    actor,
    action: 'orders.settle_refunds',
    hubId: order.hub_id,
    object: `order-${order.id}`,
    result: 'succeeded',
    detail: { settled_ids: ids, amount, currency: order.currency, reason },
  })
  return order
}

interface Booking {
  order: OrderRow
  payment: PaymentRow
  settled: readonly RefundRow[]
  actor: string
}

/** Books the settled refunds of one payment, and asks the hub to leave their units on the shelf. */
async function bookSettled(
  tx: Tx,
  { context }: MoneyServices,
  { order, payment, settled, actor }: Booking,
): Promise<void> {
  const own = settled.filter(({ payment_id }) => payment_id === payment.id)
  const settlements = own.map(({ id, item_id: itemId, quantity, amount, tax, reason }) => ({
    itemId,
    quantity,
    amount,
    tax,
    reason,
    actor,
    settles: id,
  }))
  await insertRefunds(tx, context, order, payment, settlements)
  for (const refund of own.filter(({ status }) => status === 'pending'))
    await refunds.apply(tx, context, refund, (await readOperation(tx.q, 'refund', refund.id))!, {
      outcome: 'failed',
      reason: 'processor_not_configured',
    })
  if (own.length === 0 || payment.is_late === 1 || !isAtHub(order)) return
  if ((await refundable(tx, order, payment)).amount === 0) return stopRefunded(tx, context, order)
  const lines = (await lockItems(tx, order.id))
    .filter((item) => own.some(({ item_id }) => item_id === item.id))
    .map((item) => ({ line_id: item.id, wanted: item.qty - item.refunded_quantity }))
  if (lines.length > 0) await enqueue(tx, order.hub_id, { kind: 'order.reduce', order_id: order.uuid, lines })
}
