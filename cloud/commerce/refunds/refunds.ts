import { unitShare } from '../catalogue/pricing.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import { settlePoints } from '../loyalty/points.ts'
import { tellOfRefund } from '../orders/order-events.ts'
import { lockOrderAgain, type ItemRow, type OrderRow } from '../orders/order-rows.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import type { Tx } from '../../platform/store/database.ts'
import { creditRefund } from '../wallet/wallet-ledger.ts'
import { refreshPaymentStatus, type PaymentRow, type RefundRow } from '../orders/payment-status.ts'
import {
  identityOf,
  orInDoubt,
  EXTERNAL,
  WALLET,
  ProcessorUnavailable,
  requireProcessor,
  type ProcessorRefund,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'

/** Money with the tax that is part of it. Cents; `tax` ≤ `amount`. */
export interface Share {
  amount: number
  tax: number
}

/** A line's frozen share of its order, and what of it has gone back. */
export interface LineShare {
  qty: number
  /** Without tax, after all discounts. */
  net: number
  tax: number
  /** Units refunded, and what they returned. */
  refundedUnits: number
  returned: Share
}

/**
 * What the next `units` of a line are worth: the frozen share of all units up to them, less what the line has returned
 * already. In whatever portions and with whatever refusals in between, a line never returns more than it cost.
 */
export function nextUnits({ qty, net, tax, refundedUnits, returned }: LineShare, units: number): Share {
  const upTo = (amount: number): number => unitShare(amount, qty, 0, refundedUnits + units)
  return {
    amount: Math.max(0, upTo(net + tax) - returned.amount),
    tax: Math.max(0, upTo(tax) - returned.tax),
  }
}

/**
 * Takes a share out of what is left of an order: no more than that, and so that the tax left is never more than the money
 * left. The last share takes all the tax.
 */
export function takeShare(left: Share, wanted: Share): Share {
  const amount = Math.min(left.amount, wanted.amount)
  const least = Math.max(0, left.tax - (left.amount - amount))
  return { amount, tax: Math.max(least, Math.min(wanted.tax, left.tax, amount)) }
}

/** An amount of an order as such, with the tax in proportion to what is left. */
export const amountShare = (left: Share, amount: number): Share =>
  takeShare(left, { amount, tax: left.amount === 0 ? 0 : Math.floor((left.tax * amount) / left.amount) })

/** Who has asked for what follows from what happened. */
export const SERVICE = 'service'

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
 * What can still be given back of a payment. A refund that waits for the processor counts as given back: no money is
 * reserved twice. Late money has no tax in it: its order was never sold.
 */
export async function refundable(
  tx: Tx,
  order: Pick<OrderRow, 'tax_total'>,
  payment: PaymentRow,
): Promise<Share> {
  const returned = await returnedOf(tx, 'payment_id', payment.id)
  const tax = payment.is_late === 1 ? 0 : (order.tax_total ?? 0)
  // More may be booked than there is, until the processor has refused what it gave back by itself already.
  return { amount: Math.max(0, payment.amount - returned.amount), tax: Math.max(0, tax - returned.tax) }
}

/** A frozen line, with what its own refunds have returned. */
export const lineShareOf = async (tx: Tx, item: ItemRow): Promise<LineShare> => ({
  qty: item.qty,
  net: item.net!,
  tax: item.tax!,
  refundedUnits: item.refunded_quantity,
  returned: await returnedOf(tx, 'item_id', item.id),
})

/** What refunds of a payment or of a line have returned, or will. */
async function returnedOf(tx: Tx, of: 'payment_id' | 'item_id', id: number): Promise<Share> {
  const refunds = await tx.q
    .selectFrom('refunds')
    .select(['amount', 'tax'])
    .where(of, '=', id)
    .where('status', '<>', 'failed')
    .execute()
  return refunds.reduce((sum, { amount, tax }) => ({ amount: sum.amount + amount, tax: sum.tax + tax }), {
    amount: 0,
    tax: 0,
  })
}

export interface NewRefund extends Share {
  payment: PaymentRow
  /** The line it is for, or null for an amount of the whole order. */
  itemId: number | null
  quantity: number
  reason: RefundRow['reason']
  /** Who asked for it; the service itself where absent. */
  actor?: string
  /** Whoever asked carries it out at once: due work comes in only where that has failed. */
  runsAtOnce?: boolean
  requestKey?: string | null
  /** How many refunds of this money the processor has refused before. */
  refusals?: number
}

/**
 * Records a refund, under its order's lock. One of a card payment waits for the processor (`executeRefund`); one of
 * money that an integrator took, or that came from the wallet, is done with this.
 */
export async function insertRefund(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  { payment, itemId, actor = SERVICE, runsAtOnce = false, requestKey = null, ...refund }: NewRefund,
): Promise<RefundRow> {
  const now = context.runtime.clock.now()
  const isDone = payment.processor === EXTERNAL || payment.processor === WALLET || refund.amount === 0
  const dueAt = runsAtOnce ? now + context.settings.paymentRecheckMs : now
  const row = await tx.q
    .insertInto('refunds')
    .values({
      ...refund,
      order_id: payment.order_id,
      payment_id: payment.id,
      item_id: itemId,
      status: isDone ? 'succeeded' : 'pending',
      actor,
      request_key: requestKey,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  if (isDone && payment.processor === WALLET && row.amount > 0)
    await creditRefund(tx, context, payment.user_id, row)
  if (isDone) {
    await auditRefund(tx, context, order, row)
    await tellOfRefund(tx, context, order, row)
  }
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
  context: CloudContext,
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
  if (status === 'failed') await schedule(tx, 'refund.made', refund.payment_id, now)
  if (status === 'succeeded') await tellOfRefund(tx, context, order, refund)
  await refreshRefunds(tx, context, order)
}

/** What somebody asked for is theirs to repeat, and what the processor did by itself is not ours to do. */
const isOwed = (reason: RefundRow['reason']): boolean =>
  reason !== 'customer' && reason !== 'processor' && reason !== 'dispute'

/** When money that the service owes is sent again after the processor refused to. */
function retryAt(
  { reason, refusals }: RefundRow,
  now: number,
  { refundRetries, refundRetryMs }: CloudContext['settings'],
): number | null {
  return !isOwed(reason) || refusals >= refundRetries ? null : now + refundRetryMs * 2 ** refusals
}

/** Whatever somebody asked for, and whatever was refused, is on the owner's record. */
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

/** Brings what is derived from refunds up to date: payment status, each line's refunded units, and points. */
export async function refreshRefunds(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
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
        .select(['item_id', 'quantity', 'amount', 'status'])
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
  const back = refunds.reduce((sum, { status, amount }) => sum + (status === 'succeeded' ? amount : 0), 0)
  await tellOfFailed(tx, context, order, payment !== undefined && back >= payment.amount)
}

/** The processor has refused a refund of an order, and nothing has brought that money back since. */
async function tellOfFailed(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  isWholeBack: boolean,
): Promise<void> {
  const rows = await tx.q
    .selectFrom('refunds')
    .select(['id', 'item_id', 'amount', 'status', 'failure_reason'])
    .where('order_id', '=', order.id)
    .where('reason', 'not in', ['processor', 'dispute'])
    .orderBy('id')
    .execute()
  if (rows.every(({ status }) => status !== 'failed')) return
  const latest = new Map(rows.map((row) => [row.item_id, row]))
  const failed = isWholeBack ? undefined : [...latest.values()].find(({ status }) => status === 'failed')
  const incident = { hubId: order.hub_id, kind: 'refund_failed', subject: `order ${order.id}` } as const
  if (failed)
    await raiseAlarm(tx, context, {
      ...incident,
      detail: failed.failure_reason ?? '',
      details: { refund_id: failed.id, amount: failed.amount, reason: failed.failure_reason },
    })
  // Another try that is under way has not brought it back yet.
  else if (isWholeBack || [...latest.values()].every(({ status }) => status === 'succeeded'))
    await clearAlarm(tx, context, incident)
}

/**
 * Carries a recorded refund out: the processor is asked under the key of the row, as often as it takes, and what it says
 * is stored. Returns the row as it stands then. Throws `ProcessorUnavailable`, which leaves it to due work.
 */
export async function executeRefund(services: MoneyServices, refundId: number): Promise<RefundRow> {
  const { context } = services
  const { db, checkpoint } = context
  const refund = await readRefund(context, refundId)
  if (refund.status !== 'pending') return refund
  checkpoint('refund.before-processor')
  const outcome = await askProcessor(services, refund)
  checkpoint('refund.after-processor')
  await db.transact(async (tx) => {
    const order = await lockOrderAgain(tx, refund.order_id)
    await applyRefundOutcome(tx, context, order, refund.id, outcome)
  })
  if (outcome.status === 'failed')
    context.log.error(
      { refundId, orderId: refund.order_id, amount: refund.amount, why: outcome.failureReason },
      'the processor refused a refund',
    )
  return readRefund(context, refundId)
}

/** One that the processor is at work on is asked after; any other is asked for. */
async function askProcessor(
  { context, processor }: MoneyServices,
  refund: RefundRow,
): Promise<ProcessorRefund> {
  try {
    const payment = await context.db.kysely
      .selectFrom('payments')
      .select(['processor', 'processor_ref'])
      .where('id', '=', refund.payment_id)
      .executeTakeFirstOrThrow()
    requireProcessor(processor, payment.processor)
    const call =
      refund.processor_ref !== null
        ? processor.readRefund(refund.processor_ref)
        : processor.createRefund({
            idempotencyKey: `refund:${identityOf(refund)}`,
            begunAt: refund.created_at,
            ref: payment.processor_ref!,
            amount: refund.amount,
            metadata: { refund_id: identityOf(refund), order_id: refund.order_id },
          })
    return await orInDoubt(context, call)
  } catch (error) {
    if (error instanceof ProcessorUnavailable) await markInDoubt(context, refund)
    throw error
  }
}

/** Nobody knows whether it was done: asked for once more, by whomever, it goes on under the same key. */
async function markInDoubt({ db }: CloudContext, { id }: RefundRow): Promise<void> {
  await db.kysely
    .updateTable('refunds')
    .set({ is_in_doubt: 1 })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .execute()
}

function readRefund({ db }: CloudContext, refundId: number): Promise<RefundRow> {
  return db.kysely.selectFrom('refunds').selectAll().where('id', '=', refundId).executeTakeFirstOrThrow()
}
