import type { Selectable } from 'kysely'
import { clearAlarm, everyOwner, raiseAlarm } from '../../events/alarms/alarms.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import { ownerAt } from '../../platform/credentials/hub-access.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule } from '../../platform/work/queue.ts'
import { deposits } from '../ledger/deposit.ts'
import type { IntentExtra } from '../money/intents.ts'
import { isOpen } from '../money/operation-state.ts'
import {
  begin,
  findOperation,
  MoneyOperations,
  readOperation,
  workOf,
  type Answer,
  type Operation,
  type OperationKind,
} from '../money/operations.ts'
import { noteRestored } from '../orders/restored.ts'
import type { ListedPayment, ListedRefund } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { payments } from './payment.ts'

/**
 * Payments that the card processor has and the books do not. A customer was charged, but the database was
 * restored and has no order for the charge. The service (`ORPHANED_PAYMENTS`) or a person, alerted by an
 * alarm, refunds the money.
 */
type OrphanedPayment = Selectable<Tables['orphaned_payments']>

/**
 * Compares a payment at the processor with the books. Books its success; records a payment that the books lack
 * as an orphan, unless it can take no money.
 */
export async function comparePayment(
  tx: Tx,
  context: CloudContext,
  processor: string,
  { ref, kind, identity: name, status, amount, createdAt, ...from }: ListedPayment,
): Promise<void> {
  if (status === 'failed' || status === 'canceled') return
  const known = await findOperation(tx.q, ref, { kind: kind === 'deposit' ? kind : 'payment', name })
  if (known) {
    if (status === 'succeeded') await applyIntent(tx, context, known, { outcome: status, ref })
    return
  }
  const now = context.runtime.clock.now()
  const order = { order_id: from.orderId, order_uuid: from.orderUuid, hub_id: from.hubId }
  context.log.error({ ref, amount, ...order }, 'a payment at the processor that the books do not know')
  const { id: subject } = await tx.q
    .insertInto('orphaned_payments')
    .values({ kind, amount, ...order, paid_at: createdAt })
    .returning('id')
    .executeTakeFirstOrThrow()
  const orphan = { kind: 'orphan', subject, processor, processor_ref: ref, started_at: now } as const
  // Nothing waits for it, so the questions become rarer.
  await begin(tx, context, { ...orphan, goal: 'ended', given_up_at: now }, now)
  const { order_uuid } = order
  await noteRestored(tx, context, order_uuid === null ? [] : [{ ...order, order_uuid }])
}

/** The reason in the operation of an orphan that a person has settled. */
export const SETTLED = 'settled'

/** How an orphan was closed, and by whom. */
interface Closed {
  result: 'refunded' | 'void' | 'settled'
  actor: string
}

const orphanById = (q: Queries, id: number) =>
  q.selectFrom('orphaned_payments').selectAll().where('id', '=', id)

/** Returns the money of a payment that the books do not know. */
export const orphans = new MoneyOperations<OrphanedPayment, OrphanedPayment, Closed>({
  name: 'orphan',
  find: (q, id) => orphanById(q, id).executeTakeFirst(),
  async request(services, operation, orphan) {
    const end = await endOf(services, operation, orphan)
    if (end === 'refunded' || end === 'void')
      return { outcome: 'canceled', extra: { result: end, actor: 'service' } }
    return { outcome: 'processing' }
  },
  lock: (tx, { id }) => tx.forUpdate(orphanById(tx.q, id)).executeTakeFirst(),
  async apply(tx, context, { subject: orphan, operation, extra }) {
    if (operation.state !== 'canceled' || !extra) return
    const { amount, order_id, order_uuid, hub_id: hubId } = orphan
    await appendAudit(tx.q, context.runtime, {
      actor: extra.actor,
      action: extra.result === 'settled' ? 'payments.settle' : 'payments.orphan',
      hubId,
      object: `payment-${operation.processor_ref}`,
      result: extra.result,
      detail: { amount, order_id, order_uuid },
    })
    for (const place of await placesOf(tx, orphan))
      await clearAlarm(tx, context, incidentOf(place, operation))
  },
})

/** Cancels or refunds an orphan as far as possible. Raises its alarm if the processor still has its money. */
async function endOf(
  services: MoneyServices,
  operation: Operation,
  orphan: OrphanedPayment,
): Promise<'refunded' | 'void' | 'open'> {
  const { context, processor } = services
  const ref = operation.processor_ref!
  const read = await processor.readIntent(ref)
  const isUnfinished = read.status === 'requires_action' || read.status === 'failed'
  const { status } = isUnfinished ? await processor.cancelIntent(ref) : read
  if (status === 'canceled' || status === 'failed') return 'void'
  // Its bank is still processing it: it may yet take money.
  if (status !== 'succeeded') return 'open'
  const made = await processor.listRefunds(ref)
  const sum = (isMeant: (status: string) => boolean): number =>
    made.reduce((cents, refund) => cents + (isMeant(refund.status) ? refund.amount : 0), 0)
  if (sum((one) => one === 'succeeded') >= orphan.amount) return 'refunded'
  const left = orphan.amount - sum((one) => one !== 'failed')
  const failed = triesOf(ref, made).filter(({ status: one }) => one === 'failed')
  const isDue =
    context.settings.orphanedPayments === 'refund' &&
    left > 0 &&
    isTryDue(
      context,
      failed.map(({ at }) => at),
    )
  const failure = isDue ? await refund(services, ref, orphan, left) : (failed.at(-1)?.failureReason ?? null)
  if (failure === 'refunded') return 'refunded'
  await context.db.transact((tx) => raise(tx, context, operation, { orphan, failure }))
  return 'open'
}

/** The service's refunds of an orphan with their times, oldest first. The processor has the only record of them. */
const triesOf = (ref: string, made: readonly ListedRefund[]) =>
  made
    .flatMap((refund) => {
      const [prefix, at] = [nameOfTry(ref, ''), refund.identity]
      return at?.startsWith(prefix) ? [{ ...refund, at: Number(at.slice(prefix.length)) }] : []
    })
    .toSorted((a, b) => a.at - b.at)

const nameOfTry = (ref: string, at: number | ''): string => `orphan.${ref}.${at}`

/** Whether the service may refund an orphan again after tries that failed at these times. */
function isTryDue({ runtime, settings }: CloudContext, failedAt: readonly number[]): boolean {
  const last = failedAt.at(-1)
  if (last === undefined) return true
  if (failedAt.length > settings.refundRetries) return false
  return runtime.clock.now() >= last + settings.refundRetryMs * 2 ** (failedAt.length - 1)
}

/**
 * Refunds the rest of an orphan. Returns `refunded`, or the reason of the failure; null while the processor
 * is working on it.
 */
async function refund(
  { processor, context }: MoneyServices,
  ref: string,
  { order_id }: OrphanedPayment,
  amount: number,
): Promise<string | null> {
  const now = context.runtime.clock.now()
  const { status, failureReason } = await processor.createRefund({
    // Each try is a refund of its own. It is for the whole rest: the processor refuses a second one.
    idempotencyKey: `orphan:${ref}:${now}`,
    startedAt: now,
    ref,
    amount,
    metadata: { refund_id: nameOfTry(ref, now), order_id: order_id ?? 0 },
  })
  if (status === 'succeeded') return 'refunded'
  return status === 'failed' ? (failureReason ?? 'refused') : null
}

/** The owner of the hub at the time of the payment; all owners if the hub is unknown. */
async function placesOf(tx: Tx, { hub_id, paid_at }: OrphanedPayment): Promise<{ ownerId: number }[]> {
  const ownerId = hub_id === null ? undefined : await ownerAt(tx.q, hub_id, paid_at)
  return ownerId === undefined ? everyOwner(tx) : [{ ownerId }]
}

const incidentOf = (place: { ownerId: number }, { processor_ref }: Operation) =>
  ({ ...place, kind: 'payment_orphaned', subject: `payment ${processor_ref}` }) as const

async function raise(
  tx: Tx,
  context: CloudContext,
  operation: Operation,
  { orphan, failure }: { orphan: OrphanedPayment; failure: string | null },
): Promise<void> {
  const { processor_ref: ref, processor } = operation
  const { kind, amount, order_id, order_uuid, hub_id, paid_at } = orphan
  const details = { ref, processor, kind, amount, order_id, order_uuid, hub_id, paid_at: timestamp(paid_at) }
  for (const place of await placesOf(tx, orphan))
    await raiseAlarm(tx, context, {
      ...incidentOf(place, operation),
      ...(failure !== null && { detail: `its refund failed: ${failure}` }),
      details: { ...details, refund_failure: failure },
      since: paid_at,
    })
}

/** Payments that the processor has and the books lack, oldest first, for operators. */
export const openOrphans = (q: Queries) =>
  q
    .selectFrom('orphaned_payments as p')
    .innerJoin('money_operations as o', 'o.subject', 'p.id')
    .selectAll('p')
    .select(['o.processor', 'o.processor_ref', 'o.started_at'])
    .where('o.kind', '=', 'orphan')
    .where('o.state', '<>', 'canceled')
    .orderBy('p.id')

/** The processor reports on an orphan: due work asks about it at once. */
async function checkOrphan(tx: Tx, { runtime }: CloudContext, orphan: Operation): Promise<void> {
  if (isOpen(orphan)) await schedule(tx, workOf('orphan'), orphan.subject, runtime.clock.now())
}

/**
 * Money of an orphan moved at the processor. A closed orphan opens again if the money is back, unless a person has
 * settled it. `isNews` records the move, so that it opens the orphan once.
 */
export async function followOrphan(
  tx: Tx,
  context: CloudContext,
  { subject }: Operation,
  isBack: boolean,
  isNews: () => Promise<boolean>,
): Promise<void> {
  const orphan = await tx.forUpdate(orphanById(tx.q, subject)).executeTakeFirst()
  const operation = await readOperation(tx.q, 'orphan', subject)
  if (!orphan || !operation) return
  if (isOpen(operation)) return checkOrphan(tx, context, operation)
  if (!isBack || operation.reason === SETTLED || !(await isNews())) return
  await orphans.apply(tx, context, orphan, operation, { outcome: 'returned' })
  await orphans.apply(tx, context, orphan, operation, { outcome: 'given_up' })
  await schedule(tx, workOf('orphan'), subject, context.runtime.clock.now())
}

type ApplyIntent = (
  tx: Tx,
  context: CloudContext,
  operation: Operation,
  answer: Answer<IntentExtra>,
) => Promise<void>

/** Null: operations of this kind have no payment intent. */
const intentsOf: Readonly<Record<OperationKind, ApplyIntent | null>> = {
  payment: (...report) => payments.applyEvent(...report),
  deposit: (...report) => deposits.applyEvent(...report),
  orphan: checkOrphan,
  refund: null,
  method: null,
  customer: null,
}

/** Applies the processor's report on a payment intent: an order's payment, a deposit, or an orphan. */
export const applyIntent: ApplyIntent = async (tx, context, operation, answer) =>
  intentsOf[operation.kind]?.(tx, context, operation, answer)
