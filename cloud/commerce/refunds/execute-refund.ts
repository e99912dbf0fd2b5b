import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import {
  keyOf,
  MoneyOperations,
  nameOf,
  readOperation,
  workOf,
  type Answer,
  type Change,
  type Operation,
} from '../money/operations.ts'
import { publishRefund } from '../orders/move-order.ts'
import { lockOrder, lockOrderAgain, ownerOfMoney, type OrderRow } from '../orders/order-rows.ts'
import type { RefundRow } from '../orders/payment-status.ts'
import type { ProcessorRefund } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { isByProcessor, isDue } from './owed.ts'
import { auditRefund, EXTERNAL_REFUNDS, refreshRefunds, refundStuckAt } from './refunds.ts'
import { refundLate, refundOwed } from './undelivered.ts'

const findRefund = (q: Queries, id: number): Promise<RefundRow | undefined> =>
  q.selectFrom('refunds').selectAll().where('id', '=', id).executeTakeFirst()

interface RefundOfOrder {
  order: OrderRow
  refund: RefundRow
}

/**
 * Refunds a card payment. A refund that succeeded may fail later: the card's bank returns the money. A refund without a
 * final answer is never cancelled: an alarm reports it, and the service continues to ask.
 */
export const refunds = new MoneyOperations<RefundRow, RefundOfOrder>({
  name: 'refund',
  find: findRefund,
  async request({ context, processor }, operation, refund) {
    if (operation.processor_ref !== null)
      return refundAnswer(await processor.readRefund(operation.processor_ref))
    const payment = await readOperation(context.db.kysely, 'payment', refund.payment_id)
    const asked = {
      idempotencyKey: keyOf(operation),
      startedAt: refund.created_at,
      ref: payment!.processor_ref!,
      amount: refund.amount,
      metadata: { refund_id: nameOf(operation), order_id: refund.order_id },
    }
    return refundAnswer(await processor.createRefund(asked))
  },
  async lock(tx, { id, order_id }) {
    const order = await lockOrderAgain(tx, order_id)
    const refund = await findRefund(tx.q, id)
    return refund && { order, refund }
  },
  apply: applyRefund,
  // Earlier versions stored no limit.
  giveUpAt: (context, { started_at }) => refundStuckAt(context, started_at),
  async rest({ context }, { state, subject }) {
    if (state === 'failed') await context.db.transact((tx) => replaceRefused(tx, context, subject))
  },
})

/** The processor's report about a refund, as an answer. */
export const refundAnswer = ({ ref, status, failureReason }: ProcessorRefund): Answer<never> => ({
  outcome: status === 'pending' ? 'processing' : status,
  ref,
  reason: failureReason,
})

async function applyRefund(
  tx: Tx,
  context: CloudContext,
  { subject, operation, before }: Change<RefundOfOrder, never>,
): Promise<void> {
  const { order, refund } = subject
  const { state, reason } = operation
  if (operation.given_up_at !== null || before.given_up_at !== null)
    await reportStuck(tx, context, subject, operation)
  if (state !== 'succeeded' && state !== 'failed') return
  const { runtime, settings, log } = context
  const { id, order_id: orderId, amount } = refund
  const now = runtime.clock.now()
  const isFailed = state === 'failed'
  const failed_after = isFailed ? await newestRefund(tx, orderId) : null
  const known = { status: state, failure_reason: isFailed ? reason : null, failed_after, updated_at: now }
  const completed_at = isFailed ? refund.completed_at : (refund.completed_at ?? now)
  await tx.q
    .updateTable('refunds')
    .set({ ...known, completed_at })
    .where('id', '=', id)
    .execute()
  const retryAt = isFailed ? nextTryAt(refund, now, settings) : null
  await auditRefund(tx, context, order, { ...refund, ...known }, isDue(refund) ? retryAt : null)
  if (isFailed) {
    if (retryAt !== null) await schedule(tx, workOf('refund'), id, retryAt)
    await schedule(tx, EXTERNAL_REFUNDS, refund.payment_id, now)
    log.error({ refundId: id, orderId, amount, why: reason }, 'the processor refused a refund')
  } else await publishRefund(tx, context, order, refund)
  await refreshRefunds(tx, context, order)
}

/** Refunds that the processor has neither made nor refused in time, oldest first, for operators. */
export const stuckRefunds = (q: Queries) =>
  q
    .selectFrom('money_operations as o')
    .innerJoin('refunds as r', 'r.id', 'o.subject')
    .select([
      'r.id',
      'r.order_id',
      'r.payment_id',
      'o.processor',
      'o.processor_ref',
      'r.amount',
      'o.given_up_at as stuck_at',
    ])
    .where('o.kind', '=', 'refund')
    .where('o.given_up_at', 'is not', null)
    .orderBy('r.id')

/** Raises or clears the alarm of a stuck refund. The alarm belongs to the owner of the money. */
async function reportStuck(
  tx: Tx,
  context: CloudContext,
  { order, refund }: RefundOfOrder,
  { processor, processor_ref, given_up_at: since }: Operation,
): Promise<void> {
  const { id, order_id, payment_id, amount } = refund
  const incident = { hubId: order.hub_id, kind: 'payment_stuck', subject: `refund ${id}` } as const
  if (since === null) return clearAlarm(tx, context, incident)
  await raiseAlarm(tx, context, {
    ...incident,
    soldBy: ownerOfMoney(order, refund),
    what: 'has no final result at its processor, and its customer waits for the money',
    detail: `order ${order_id}`,
    details: { refund_id: id, order_id, payment_id, processor, processor_ref, amount },
    since,
    // The processor's id may become known later.
    refreshes: true,
  })
}

async function newestRefund(tx: Tx, orderId: number): Promise<number> {
  const { id } = await tx.q
    .selectFrom('refunds')
    .select('id')
    .where('order_id', '=', orderId)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()
  return id
}

/**
 * The time when the service retries a refund that it owes after a failure; null: never. A person who asked
 * for a refund must ask again. Money that the processor itself had taken back is available again, and may be
 * owed by now.
 */
function nextTryAt(
  refund: RefundRow,
  now: number,
  { refundRetries, refundRetryMs }: CloudContext['settings'],
): number | null {
  if (isByProcessor(refund)) return now
  const { refusals } = refund
  return refusals < refundRetries ? now + refundRetryMs * 2 ** refusals : null
}

/**
 * Replaces a failed refund by a new one, of the amount that the customer is owed now. The amount may have
 * changed: a person may have returned the money by hand, or the service now owes a refund that a person
 * requested earlier.
 */
async function replaceRefused(tx: Tx, context: CloudContext, id: number): Promise<void> {
  const refused = await findRefund(tx.q, id)
  const order = refused && (await lockOrder(tx, refused.order_id))
  // If two processes run this at once, the second finds the work gone.
  if (!order || !(await unschedule(tx, workOf('refund'), id))) return
  const refusals = refused.refusals + 1
  const payment = await tx.q
    .selectFrom('payments')
    .selectAll()
    .where('id', '=', refused.payment_id)
    .executeTakeFirstOrThrow()
  if (payment.is_late === 1) await refundLate(tx, context, order, payment, { refusals })
  else await refundOwed(tx, context, order, refusals)
}

/**
 * Executes a recorded refund and returns its current row. Throws `ProcessorUnavailable`; due work then
 * executes it.
 */
export async function executeRefund(services: MoneyServices, id: number): Promise<RefundRow> {
  const { kysely: q } = services.context.db
  const refund = (await findRefund(q, id))!
  const operation = await readOperation(q, 'refund', id)
  if (refund.status !== 'pending' || !operation) return refund
  await refunds.execute(services, refund, operation, { by: 'caller' })
  return (await findRefund(q, id))!
}
