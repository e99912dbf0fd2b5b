import type { Selectable } from 'kysely'
import { clearAlarm, everyOwner, raiseAlarm, type Whereabouts } from '../../events/alarms/alarms.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { ownerAt } from '../../platform/credentials/hub-access.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { noteRestored } from '../orders/restored.ts'
import {
  orInDoubt,
  processorBackoff,
  requireProcessor,
  type IntentStatus,
  type MadePayment,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { findOperation } from '../money/operations.ts'
import { applyIntent } from './apply-intent.ts'

/**
 * Payments that the card processor has and the books do not. A customer was charged, but the database was
 * restored and has no order for the charge. The service (`ORPHANED_PAYMENTS`) or a person, alerted by an
 * alarm, refunds the money.
 */
export type OrphanedPayment = Selectable<Tables['orphaned_payments']>

const WORK = 'payment.orphaned'

/** Whether an intent took money, or may still take it. */
const mayTakeMoney = (status: IntentStatus): boolean => status !== 'failed' && status !== 'canceled'

/**
 * Compares the processor's payments with the books. Books payments that succeeded, and records unknown
 * payments as orphans.
 */
export async function comparePayments(
  tx: Tx,
  context: CloudContext,
  processor: string,
  made: readonly MadePayment[],
): Promise<void> {
  const orphans: MadePayment[] = []
  for (const payment of made.filter(({ status }) => mayTakeMoney(status))) {
    const { ref, kind, identity: name, status } = payment
    const named = { kind: kind === 'deposit' ? kind : ('payment' as const), name }
    const operation = await findOperation(tx.q, ref, named)
    if (!operation) orphans.push(payment)
    else if (status === 'succeeded') await applyIntent(tx, context, operation, { outcome: status, ref })
  }
  if (orphans.length > 0) await record(tx, context, processor, orphans)
}

async function record(
  tx: Tx,
  context: CloudContext,
  processor: string,
  orphans: readonly MadePayment[],
): Promise<void> {
  const now = context.runtime.clock.now()
  const news = await tx.q
    .insertInto('orphaned_payments')
    .values(
      orphans.map(({ ref, kind, amount, orderId, orderUuid, hubId, createdAt }) => ({
        ref,
        processor,
        kind,
        amount,
        order_id: orderId,
        order_uuid: orderUuid,
        hub_id: hubId,
        paid_at: createdAt,
        state: 'open' as const,
        found_at: now,
        updated_at: now,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .execute()
  for (const { ref, amount, order_id: orderId, order_uuid: orderUuid } of news) {
    context.log.error(
      { ref, amount, orderId, orderUuid },
      'a payment at the processor that the books do not know',
    )
    await schedule(tx, WORK, ref, now)
  }
  if (news.length > 0)
    await noteRestored(
      tx,
      context,
      news.flatMap(({ order_uuid, order_id, hub_id }) =>
        order_uuid === null ? [] : { order_uuid, order_id, hub_id },
      ),
    )
}

/**
 * Handles money that moved at the processor for an intent that the books do not know. Returns true if the
 * intent is an orphan.
 */
export async function orphanHasMoved(tx: Tx, { runtime }: CloudContext, ref: string): Promise<boolean> {
  const orphan = await tx.q
    .selectFrom('orphaned_payments')
    .select('state')
    .where('ref', '=', ref)
    .executeTakeFirst()
  if (orphan?.state === 'open') await schedule(tx, WORK, ref, runtime.clock.now())
  return orphan !== undefined
}

export const orphanWork = (services: MoneyServices): WorkKinds => ({
  [WORK]: {
    backoff: processorBackoff(services.context),
    look: ({ subject }) => lookAtOrphan(services, subject),
  },
})

async function lookAtOrphan(services: MoneyServices, ref: string): Promise<Outcome> {
  const { context, processor } = services
  const { db, runtime, settings } = context
  const orphan = await db.kysely
    .selectFrom('orphaned_payments')
    .selectAll()
    .where('ref', '=', ref)
    .executeTakeFirst()
  if (orphan?.state !== 'open') return done
  requireProcessor(processor, orphan.processor)
  const again = { next: runtime.clock.now() + settings.processorCheckMs }
  const status = await endOf(services, ref)
  if (status === 'canceled' || status === 'failed') return close(context, orphan, 'void')
  // Its bank is still processing it: it may yet take money.
  if (status !== 'succeeded') return again
  const made = await processor.listRefunds(ref)
  const sum = (isMeant: (status: string) => boolean): number =>
    made.reduce((cents, refund) => cents + (isMeant(refund.status) ? refund.amount : 0), 0)
  if (sum((one) => one === 'succeeded') >= orphan.amount) return close(context, orphan, 'refunded')
  const left = orphan.amount - sum((one) => one !== 'failed')
  const failure =
    settings.orphanedPayments === 'refund' && left > 0 ? await refund(services, orphan, left) : null
  if (failure === 'refunded') return close(context, orphan, 'refunded')
  await db.transact((tx) => tell(tx, context, orphan, failure))
  return again
}

/**
 * Returns the intent's status. Cancels an intent that its customer has not finished, because no order waits
 * for it.
 */
async function endOf({ context, processor }: MoneyServices, ref: string): Promise<IntentStatus> {
  const { status } = await processor.readIntent(ref)
  if (status !== 'requires_action' && status !== 'failed') return status
  return (await orInDoubt(context, processor.cancelIntent(ref))).status
}

/**
 * Refunds the rest of an orphan. Returns `refunded`, or the reason of the failure; null while the processor
 * is working on it.
 */
async function refund(
  { context, processor }: MoneyServices,
  { ref, order_id, found_at }: OrphanedPayment,
  amount: number,
): Promise<string | null> {
  const { status, failureReason } = await orInDoubt(
    context,
    processor.createRefund({
      // One key per amount: the amount differs after a partial refund.
      idempotencyKey: `orphan:${ref}:${amount}`,
      begunAt: found_at,
      ref,
      amount,
      metadata: { refund_id: `orphan.${ref}.${amount}`, order_id: order_id ?? 0 },
    }),
  )
  if (status === 'succeeded') return 'refunded'
  return status === 'failed' ? (failureReason ?? 'refused') : null
}

/** The owner of the hub at the time of the payment; all owners if the hub is unknown. */
async function placesOf(tx: Tx, { hub_id, paid_at }: OrphanedPayment): Promise<Whereabouts[]> {
  const ownerId = hub_id === null ? undefined : await ownerAt(tx.q, hub_id, paid_at)
  return ownerId === undefined ? everyOwner(tx) : [{ ownerId }]
}

const incidentOf = (place: Whereabouts, { ref }: OrphanedPayment) =>
  ({ ...place, kind: 'payment_orphaned', subject: `payment ${ref}` }) as const

async function tell(
  tx: Tx,
  context: CloudContext,
  orphan: OrphanedPayment,
  failure: string | null,
): Promise<void> {
  const { ref, processor, kind, amount, order_id, order_uuid, hub_id, paid_at } = orphan
  const details = { ref, processor, kind, amount, order_id, order_uuid, hub_id, paid_at: timestamp(paid_at) }
  for (const place of await placesOf(tx, orphan))
    await raiseAlarm(tx, context, {
      ...incidentOf(place, orphan),
      ...(failure !== null && { detail: `its refund failed: ${failure}` }),
      details: { ...details, refund_failure: failure },
      since: paid_at,
    })
}

/** The payment needs no further work. */
async function close(
  context: CloudContext,
  orphan: OrphanedPayment,
  state: 'refunded' | 'void',
): Promise<Outcome> {
  await context.db.transact((tx) => closeOrphan(tx, context, orphan, state, 'service'))
  return done
}

/** Closes an orphan, with a record of who did it. */
export async function closeOrphan(
  tx: Tx,
  context: CloudContext,
  orphan: OrphanedPayment,
  state: 'refunded' | 'void' | 'settled',
  actor: string,
): Promise<void> {
  const { ref, amount, order_id, order_uuid, hub_id: hubId } = orphan
  const closed = await tx.q
    .updateTable('orphaned_payments')
    .set({ state, updated_at: context.runtime.clock.now() })
    .where('ref', '=', ref)
    .where('state', '=', 'open')
    .returning('ref')
    .execute()
  if (closed.length === 0) return
  await unschedule(tx, WORK, ref)
  await appendAudit(tx.q, context.runtime, {
    actor,
    action: state === 'settled' ? 'payments.settle' : 'payments.orphan',
    hubId,
    object: `payment-${ref}`,
    result: state,
    detail: { amount, order_id, order_uuid },
  })
  for (const place of await placesOf(tx, orphan)) await clearAlarm(tx, context, incidentOf(place, orphan))
}
