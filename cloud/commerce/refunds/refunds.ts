import { sql } from 'kysely'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { completedPayments, isByProcessor, readOwed } from './owed.ts'
import { leftOf, type Share } from './shares.ts'
import { amendAlarm, clearAlarm, latestAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import { post } from '../ledger/ledger.ts'
import { refreshPoints } from '../ledger/points.ts'
import { isWalletOpen } from '../ledger/wallet.ts'
import { publishRefund } from '../orders/move-order.ts'
import { ownerOfMoney, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { refreshPaymentStatus, type PaymentRow, type RefundRow } from '../orders/payment-status.ts'
import { begin } from '../money/operations.ts'
import { EXTERNAL, WALLET } from '../processors/processor.ts'

/** The actor of refunds that the service starts without a request. */
export const SERVICE = 'service'

/** When a refund that the processor is asked for from `startedAt` is reported as stuck (milliseconds since the Unix epoch). */
export const refundStuckAt = ({ settings }: CloudContext, startedAt: number): number =>
  startedAt + settings.refundStuckMs

/** Due work of a payment with a failed refund: the processor may have refunded it already, without these books. */
export const EXTERNAL_REFUNDS = 'refund.external'

/** The payment that paid for an order and receives its refunds; undefined if no payment came in time. */
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
 * The payment that an owner's refund of an order returns: the payment that paid for it. If nothing is left of that
 * payment, or if no payment came in time: late money with a refund that failed. Throws `order_state_conflict` if
 * nothing was paid.
 */
export async function refundablePayment(
  tx: Tx,
  order: Pick<OrderRow, 'id' | 'tax_total'>,
): Promise<PaymentRow> {
  const completed = (await completedPayments(tx.q, order.id))
    .filter(({ amount }) => amount > 0)
    .toSorted((a, b) => a.is_late - b.is_late)
  for (const payment of completed) if ((await refundable(tx, order, payment)).amount > 0) return payment
  return paid(completed[0])
}

/** The payment that paid for an order. Throws `order_state_conflict` if nothing was paid in time. */
export const requirePaid = async (tx: Tx, order: Pick<OrderRow, 'id'>): Promise<PaymentRow> =>
  paid(await paidPayment(tx, order.id))

function paid(payment: PaymentRow | undefined): PaymentRow {
  if (payment && payment.amount > 0) return payment
  throw new ApiError('order_state_conflict', 'Nothing was paid for this order.')
}

/**
 * The part of a payment that can still be refunded. A refund that waits for the processor counts as refunded:
 * no money is reserved twice.
 */
export async function refundable(
  tx: Tx,
  order: Pick<OrderRow, 'tax_total'>,
  payment: PaymentRow,
): Promise<Share> {
  return leftOf(order, payment, await liveRefunds(tx, payment.id))
}

/** Refunds of a payment that have returned money, or will. */
export function liveRefunds(tx: Tx, paymentId: number) {
  return tx.q
    .selectFrom('refunds')
    .select(['item_id', 'quantity', 'amount', 'tax', 'status'])
    .where('payment_id', '=', paymentId)
    .where('status', '<>', 'failed')
    .execute()
}

export interface NewRefund extends Share {
  /** The refunded line; null for an amount of the whole order. */
  itemId: number | null
  quantity: number
  reason: RefundRow['reason']
  /** The person who asked for it; the service itself if absent. */
  actor?: string
  /** The caller executes it at once: due work starts only if that fails. */
  runsAtOnce?: boolean
  requestKey?: string | null
  /** Number of earlier refunds of this money that the processor refused. */
  refusals?: number
  /** The failed refund that the actor has paid outside of the service. */
  settles?: number
}

/**
 * Records refunds of a payment, under its order's lock.
 *
 * - Refunds of a card payment wait for the processor (`executeRefund`).
 * - Refunds of external or wallet payments are complete at once.
 * - A refund to the wallet of a deleted user fails (`wallet_closed`).
 * - A refund that a person has paid outside of the service is complete at once, and moves no money.
 */
export async function insertRefunds(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  refunds: readonly NewRefund[],
): Promise<RefundRow[]> {
  if (refunds.length === 0) return []
  const now = context.runtime.clock.now()
  type Kind = Pick<RefundRow, 'amount' | 'settles'>
  const isDone = ({ amount, settles }: Kind): boolean =>
    payment.processor === EXTERNAL || payment.processor === WALLET || amount === 0 || settles !== null
  const failure =
    payment.processor === WALLET && !(await isWalletOpen(tx, payment.user_id)) ? 'wallet_closed' : null
  const failureOf = ({ amount, settles }: Kind): string | null =>
    amount === 0 || settles !== null ? null : failure
  const statusOf = (kind: Kind): RefundRow['status'] =>
    !isDone(kind) ? 'pending' : failureOf(kind) === null ? 'succeeded' : 'failed'
  const rows = await tx.q
    .insertInto('refunds')
    .values(
      refunds.map(({ itemId, amount, tax, quantity, reason, settles = null, ...asked }) => ({
        amount,
        tax,
        quantity,
        reason,
        order_id: payment.order_id,
        payment_id: payment.id,
        hub_id: payment.hub_id,
        owner_id: payment.owner_id,
        item_id: itemId,
        status: statusOf({ amount, settles }),
        failure_reason: failureOf({ amount, settles }),
        settles,
        actor: asked.actor ?? SERVICE,
        refusals: asked.refusals ?? 0,
        request_key: asked.requestKey ?? null,
        created_at: now,
        completed_at: statusOf({ amount, settles }) === 'succeeded' ? now : null,
        updated_at: now,
      })),
    )
    .returningAll()
    .execute()
  for (const row of rows.filter(isDone)) {
    if (row.settles === null) await auditRefund(tx, context, order, row)
    if (row.status === 'failed') continue
    if (payment.processor === WALLET && row.settles === null && row.amount > 0)
      await post(tx, context, {
        user_id: payment.user_id,
        account: 'wallet',
        type: 'refund',
        amount: row.amount,
        order_id: row.order_id,
        cause: `refund ${row.id}`,
      })
    await publishRefund(tx, context, order, row)
  }
  await refreshRefunds(tx, context, order)
  const pending = rows
    .filter((row) => !isDone(row))
    .map(({ id }) => ({
      kind: 'refund' as const,
      subject: id,
      processor: payment.processor,
      give_up_at: refundStuckAt(context, now),
      started_at: now,
    }))
  const runsAtOnce = refunds.some((refund) => refund.runsAtOnce)
  await begin(tx, context, pending, runsAtOnce ? undefined : now)
  return rows
}

/** Records a single refund; see `insertRefunds`. */
export async function insertRefund(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  { payment, ...refund }: NewRefund & { payment: PaymentRow },
): Promise<RefundRow> {
  const [row] = await insertRefunds(tx, context, order, payment, [refund])
  return row!
}

/** Writes every requested and every refused refund to the owner's audit log. */
export async function auditRefund(
  tx: Tx,
  { runtime }: CloudContext,
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

/** Updates the values derived from refunds: payment status, each line's refunded units, and points. */
export async function refreshRefunds(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  await refreshPaymentStatus(tx, order.id)
  const items = await tx.q
    .selectFrom('order_items')
    .select(['id', 'qty', 'refunded_quantity'])
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  const payment = await paidPayment(tx, order.id)
  const refunds = payment ? await liveRefunds(tx, payment.id) : []
  const refunded = refunds.reduce((sum, { amount }) => sum + amount, 0)
  const isWhole = payment !== undefined && payment.amount > 0 && refunded >= payment.amount
  const unitsOf = (itemId: number): number =>
    refunds.reduce((sum, refund) => sum + (refund.item_id === itemId ? refund.quantity : 0), 0)
  const changed = items
    .map(({ id, qty, refunded_quantity: known }) => ({
      id,
      known,
      refunded: isWhole ? qty : Math.min(qty, unitsOf(id)),
    }))
    .filter(({ known, refunded }) => refunded !== known)
  if (changed.length > 0)
    await sql`
      update order_items set refunded_quantity = r.refunded
      from ${recordset(tx.kind, { id: 'int', refunded: 'int' }, changed)}
      where order_items.id = r.id`.execute(tx.q)
  await refreshPoints(tx, context, order)
  const back = refunds.reduce((sum, { status, amount }) => sum + (status === 'succeeded' ? amount : 0), 0)
  await reportFailedRefund(tx, context, order, payment !== undefined && back >= payment.amount)
}

/**
 * Raises an alarm with the refunds of an order that failed and are still owed. Clears it when the money has been
 * returned. A refund that takes the place of a failed one keeps the alarm open until its outcome is known.
 */
async function reportFailedRefund(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  isWholeBack: boolean,
): Promise<void> {
  const { refunds, owed } = await readOwed(tx.q, order)
  if (refunds.every((refund) => refund.status !== 'failed' || isByProcessor(refund))) return
  const incident = { hubId: order.hub_id, kind: 'refund_failed', subject: `order ${order.id}` } as const
  const newest = owed.at(-1)
  const reason = newest?.failure_reason ?? null
  const details = {
    refund_ids: owed.map(({ id }) => id),
    amount: owed.reduce((sum, { amount }) => sum + amount, 0),
    currency: order.currency,
    reason,
  }
  if (newest)
    return raiseAlarm(tx, context, {
      ...incident,
      soldBy: ownerOfMoney(order, newest),
      detail: reason ?? '',
      details,
      refreshes: true,
    })
  if (isWholeBack || refunds.every((refund) => refund.status !== 'pending' || isByProcessor(refund)))
    return clearAlarm(tx, context, incident)
  const alarm = await latestAlarm(tx, incident)
  if (alarm?.endedAt === null) await amendAlarm(tx, alarm.id, details)
}
