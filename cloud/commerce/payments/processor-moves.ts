import {
  clearAlarm,
  everyOwner,
  raiseAlarm,
  type Raised,
  type Whereabouts,
} from '../../events/alarms/alarms.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { publishOrder, publishRefund } from '../orders/move-order.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { isAtHub, lockOrder, ownerOfMoney, type OrderRow } from '../orders/order-rows.ts'
import {
  begin,
  findOperation,
  readOperation,
  type Operation,
  type OperationKind,
} from '../money/operations.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import {
  processorBackoff,
  requireProcessor,
  type MoveStatus,
  type ProcessorRefund,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { refundAnswer, refunds } from '../refunds/execute-refund.ts'
import { EXTERNAL_REFUNDS, refreshRefunds, refundable, refundStuckAt } from '../refunds/refunds.ts'
import { amountShare } from '../refunds/shares.ts'
import { refundOwed, stopRefunded } from '../refunds/undelivered.ts'
import { deposits, lockDeposit } from '../ledger/deposit.ts'
import { walletHolder } from '../ledger/move-ledger.ts'
import { restoreDeposit, takeDeposit } from '../ledger/wallet.ts'
import { followOrphan } from './orphaned-payments.ts'
import { findPayment, payments } from './payment.ts'

/** Money of a payment or deposit that moved at the processor without a request of the service. */
export interface ProcessorMove {
  /** The processor's id of the refund or dispute. */
  ref: string
  kind: 'refund' | 'dispute'
  /** The intent that took the money. */
  intent: string
  /** Cents. */
  amount: number
  /**
   * `succeeded`: the money has left. A dispute has this status while it is open and after it is lost.
   * `failed`: the money is back.
   */
  status: MoveStatus
  reason: string | null
}

/** A move with a status that can be booked. */
type KnownMove = ProcessorMove & { status: ProcessorRefund['status'] }
const isKnownMove = (move: ProcessorMove): move is KnownMove => move.status !== 'unknown'

/** Null: operations of this kind have no payment intent. */
const movesOf: Readonly<
  Record<
    OperationKind,
    ((tx: Tx, context: CloudContext, operation: Operation, move: ProcessorMove) => Promise<void>) | null
  >
> = {
  payment: (tx, context, operation, move) => followPayment(tx, context, operation, [move]),
  deposit: followDeposit,
  orphan: (tx, context, operation, move) =>
    followOrphan(
      tx,
      context,
      operation,
      move.status === 'failed',
      async () => isKnownMove(move) && recordStage(tx, context, move),
    ),
  refund: null,
  method: null,
  customer: null,
}

/**
 * Books money that moved at the processor: an external refund for an order, a wallet adjustment for a
 * deposit. Events may come late, repeated and in any order; the result is the same. Returns false if the
 * money belongs to none of our payments.
 */
export async function applyMove(tx: Tx, context: CloudContext, move: ProcessorMove): Promise<boolean> {
  const operation = await findOperation(tx.q, move.intent)
  if (operation) await movesOf[operation.kind]?.(tx, context, operation, move)
  return operation !== undefined
}

/** An intent with moved money must have succeeded, though its event may come later. */
const taken = ({ intent }: ProcessorMove) => ({ outcome: 'succeeded', ref: intent }) as const

/**
 * Returns true if a move has advanced beyond the books. A move has one direction: pending, gone, back. An
 * event that arrives after a later one changes nothing. Call it under the lock of the order or wallet.
 */
async function recordStage(tx: Tx, context: CloudContext, { ref, status }: KnownMove): Promise<boolean> {
  const step = { stage: stages[status], updated_at: context.runtime.clock.now() }
  const written = await tx.q
    .insertInto('processor_moves')
    .values({ ref, ...step })
    .onConflict((conflict) =>
      conflict.column('ref').doUpdateSet(step).where('processor_moves.stage', '<', step.stage),
    )
    .returning('ref')
    .execute()
  return written.length > 0
}

const stages = { pending: 0, succeeded: 1, failed: 2 } as const satisfies Record<KnownMove['status'], number>

async function isBack(tx: Tx, ref: string): Promise<boolean> {
  const move = await tx.q
    .selectFrom('processor_moves')
    .select('stage')
    .where('ref', '=', ref)
    .executeTakeFirst()
  return move?.stage === stages.failed
}

/**
 * Applies moves of one payment, then decides once how much the order is owed. If no move is new, the debt is
 * unchanged: refunds that the processor refused are retried on their own schedule (`retryAt`).
 */
async function followPayment(
  tx: Tx,
  context: CloudContext,
  { subject }: Operation,
  moves: readonly ProcessorMove[],
): Promise<void> {
  const known = moves.filter(isKnownMove)
  const read = async () => (await findPayment(tx.q, subject))!
  await lockOrder(tx, (await read()).order_id)
  // Read under the order's lock: another payment may have just replaced this one.
  const before = await read()
  const operation = (await readOperation(tx.q, 'payment', subject))!
  const bookTaken = async () => known[0] && payments.apply(tx, context, before, operation, taken(known[0]))
  const isAwaited = before.status === 'pending' || before.status === 'requires_action'
  if (isAwaited && operation.goal === 'done') await bookTaken()
  const payment = await read()
  const order = (await lockOrder(tx, payment.order_id))!
  const hasPaid = payment.status === 'completed' && payment.is_late === 0
  const money = hasPaid ? payment : { ...payment, is_late: 1 as const }
  for (const move of moves) if (!isKnownMove(move)) await reportUnknown(tx, context, order, money, move)
  let hasMoved = false
  for (const move of known) if (await followMove(tx, context, order, money, move)) hasMoved = true
  // Late money: its success is booked after its moves, so that only the rest is refunded.
  if (!hasPaid) await bookTaken()
  if (!hasPaid || !hasMoved) return
  const left = await refundable(tx, order, payment)
  if (left.amount > 0) await refundOwed(tx, context, order)
  else if (isAtHub(order)) await stopRefunded(tx, context, order)
}

/**
 * Returns false for a move that changes nothing: it is known, or the money was back before the books knew
 * that it had left.
 */
async function followMove(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  move: KnownMove,
): Promise<boolean> {
  if (!(await recordStage(tx, context, move))) return false
  if (move.kind === 'dispute' && move.status === 'failed')
    await clearAlarm(tx, context, disputeOf({ hubId: order.hub_id }, `order ${order.id}`, move.ref))
  const known = await findOperation(tx.q, move.ref)
  if (!known) {
    if (move.status === 'failed') return false
    await record(tx, context, order, payment, move)
    return true
  }
  await refunds.applyEvent(tx, context, known, refundAnswer({ ...move, failureReason: move.reason }))
  return true
}

/** The processor used a status that this version does not know: a person must check. */
async function reportUnknown(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  { ref, kind, amount, reason }: ProcessorMove,
): Promise<void> {
  context.log.error({ orderId: order.id, kind, ref, amount, reason }, 'unknown status at the processor')
  if (await isBack(tx, ref)) return
  const dispute = disputeOf({ hubId: order.hub_id }, `order ${order.id}`, ref)
  await raiseAlarm(tx, context, {
    ...dispute,
    soldBy: ownerOfMoney(order, payment),
    detail: reason ?? '',
    details: { processor_ref: ref, amount, reason },
    isRepeated: true,
  })
}

/** It is over when the bank has returned the money, or when a person has acknowledged it. */
const disputeOf = <Place extends Whereabouts>(place: Place, subject: string, ref: string) =>
  ({ ...place, kind: 'payment_disputed', incident: `dispute ${ref}`, subject }) as const

/** The actor of the processor's own events in the audit log. */
const PROCESSOR = 'processor'

async function record(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  { ref, kind, amount: moved, status, reason }: KnownMove,
): Promise<void> {
  const now = context.runtime.clock.now()
  const amount = Math.min(moved, payment.amount)
  const left = await refundable(tx, order, payment)
  const { tax } = amountShare(left, Math.min(amount, left.amount))
  const { id } = await tx.q
    .insertInto('refunds')
    .values({
      order_id: order.id,
      payment_id: payment.id,
      hub_id: payment.hub_id,
      owner_id: payment.owner_id,
      item_id: null,
      quantity: 0,
      amount,
      tax,
      reason: kind === 'dispute' ? 'dispute' : 'processor',
      status,
      actor: PROCESSOR,
      created_at: now,
      completed_at: status === 'succeeded' ? now : null,
      updated_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  await begin(tx, context, {
    kind: 'refund',
    subject: id,
    processor: payment.processor,
    state: status === 'pending' ? 'processing' : 'succeeded',
    processor_ref: ref,
    give_up_at: refundStuckAt(context, now),
    started_at: now,
  })
  const detail = { refund_id: id, processor_ref: ref, amount, reason }
  await appendAudit(tx.q, context.runtime, {
    actor: PROCESSOR,
    action: kind === 'dispute' ? 'orders.dispute' : 'orders.refund',
    hubId: order.hub_id,
    object: `order-${order.id}`,
    result: status,
    detail,
  })
  context.log.warn({ orderId: order.id, kind, ...detail }, 'money of an order moved at the processor')
  if (kind === 'dispute') {
    const soldBy = ownerOfMoney(order, payment)
    publishOrder(tx, context, order, 'payment.disputed', soldBy)
    const dispute = disputeOf({ hubId: order.hub_id }, `order ${order.id}`, ref)
    await raiseAlarm(tx, context, { ...dispute, soldBy, detail: reason ?? '', details: detail })
  }
  if (status === 'succeeded')
    await publishRefund(tx, context, order, { id, amount, owner_id: payment.owner_id })
  await refreshRefunds(tx, context, order)
}

/**
 * Takes the money out of the wallet; the amount above its balance becomes a debt. Money that comes back is
 * credited.
 */
async function followDeposit(
  tx: Tx,
  context: CloudContext,
  operation: Operation,
  move: ProcessorMove,
): Promise<void> {
  // The deposit's lock comes first: it serialises the moves of one deposit.
  const deposit = (await lockDeposit(tx, operation.subject))!
  const { id } = deposit
  const userId = await walletHolder(tx, deposit.user_id)
  const { ref, kind, amount, reason } = move
  if (!isKnownMove(move)) {
    context.log.error({ userId, kind, ref, amount, reason }, 'unknown status at the processor')
    if (!(await isBack(tx, ref)))
      await reportDepositDispute(tx, context, id, {
        ref,
        detail: reason ?? '',
        details: { amount, reason },
        isRepeated: true,
      })
    return
  }
  await deposits.apply(tx, context, deposit, operation, taken(move))
  if (move.status === 'pending' || !(await recordStage(tx, context, move))) return
  if (move.status === 'failed') {
    await restoreDeposit(tx, context, userId, ref)
    if (kind === 'dispute')
      for (const place of await everyOwner(tx))
        await clearAlarm(tx, context, disputeOf(place, `deposit ${id}`, ref))
    return
  }
  const missing = await takeDeposit(tx, context, userId, { ref, amount })
  if (missing > 0)
    context.log.error(
      { userId, kind, ref, amount, missing },
      'the processor returned a deposit; its wallet owes the spent part',
    )
  if (kind === 'dispute') {
    const detail = missing > 0 ? `${missing} of its ${amount} cents are spent` : ''
    await reportDepositDispute(tx, context, id, { ref, detail, details: { amount, missing } })
  }
}

/** A wallet pays at the hubs of all owners. */
async function reportDepositDispute(
  tx: Tx,
  context: CloudContext,
  id: number,
  { ref, details, ...report }: Pick<Raised, 'detail' | 'isRepeated'> & { ref: string; details: object },
): Promise<void> {
  for (const place of await everyOwner(tx))
    await raiseAlarm(tx, context, {
      ...disputeOf(place, `deposit ${id}`, ref),
      ...report,
      details: { processor_ref: ref, ...details },
    })
}

/**
 * The processor has refused to refund a payment. Part of the money may already be refunded on behalf of books
 * that were lost since. No event reports such refunds again, so this work reads the processor's refunds.
 */
export const externalRefundWork = (services: MoneyServices): WorkKinds => ({
  [EXTERNAL_REFUNDS]: {
    backoff: processorBackoff(services.context),
    run: ({ subject }) => followRefunds(services, Number(subject)),
  },
})

async function followRefunds({ context, processor }: MoneyServices, paymentId: number): Promise<Outcome> {
  const { db } = context
  const payment = await findPayment(db.kysely, paymentId)
  const operation = await readOperation(db.kysely, 'payment', paymentId)
  const intent = operation?.processor_ref
  if (!payment || !intent) return done
  requireProcessor(processor, payment.processor)
  const made = await processor.listRefunds(intent)
  await db.transact(async (tx) => {
    if (!(await lockOrder(tx, payment.order_id))) return
    const moves: ProcessorMove[] = []
    for (const { ref, identity, amount, status } of made) {
      if (status === 'failed' || (await findOperation(tx.q, ref, { kind: 'refund', name: identity })))
        continue
      moves.push({ ref, kind: 'refund', intent, amount, status, reason: null })
    }
    if (moves.length > 0) await followPayment(tx, context, operation, moves)
  })
  return done
}
