import type { Selectable } from 'kysely'
import {
  clearAlarm,
  everyOwner,
  latestAlarm,
  raiseAlarm,
  type Whereabouts,
} from '../../events/alarms/alarms.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ownerAt, readTenures, within } from '../../platform/credentials/hub-access.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

/**
 * Payments that the card processor has and the books do not. A customer was charged, but the database was
 * restored and has no order for the charge. The service (`ORPHANED_PAYMENTS`) or a person, alerted by an
 * alarm, refunds the money.
 *
 * A restore can lose hundreds of payments, so the orphans of a hub share one alarm: its subject is the oldest payment, its
 * details contain the number and the list. The alarm ends with the last of them.
 */
export type OrphanedPayment = Selectable<Tables['orphaned_payments']>

/** Maximum number of payments in an alarm. `larder payments orphaned` lists them all. */
const MOST_PAYMENTS = 200

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

type OpenOrphan = Awaited<ReturnType<ReturnType<typeof openOrphans>['execute']>>[number]

type Listed = ReturnType<typeof listed>
const listed = (orphan: OpenOrphan, refund_failure: string | null) => {
  const { processor_ref: ref, processor, kind, amount, order_id, order_uuid, hub_id } = orphan
  const paid_at = timestamp(orphan.paid_at)
  return { ref, processor, kind, amount, order_id, order_uuid, hub_id, paid_at, refund_failure }
}

/** The processor has the money of an orphan. `failure`: why its refund failed. */
export async function noteTaken(
  tx: Tx,
  context: CloudContext,
  orphan: OrphanedPayment,
  taken: { ref: string; failure: string | null },
): Promise<void> {
  for (const ownerId of await ownersOf(tx, orphan)) {
    await endFormer(tx, context, ownerId, taken.ref)
    await show(tx, context, { ownerId, orphan, taken })
  }
}

/** The orphan is refunded, void or settled. */
export async function noteClosed(
  tx: Tx,
  context: CloudContext,
  orphan: OrphanedPayment,
  ref: string | null,
): Promise<void> {
  for (const ownerId of await ownersOf(tx, orphan)) {
    await endFormer(tx, context, ownerId, ref)
    await show(tx, context, { ownerId, orphan })
  }
}

/** The owner of the hub at the time of the payment; all owners if the hub is unknown. Their alarms are locked. */
async function ownersOf(tx: Tx, { hub_id, paid_at }: OrphanedPayment): Promise<number[]> {
  const ownerId = hub_id === null ? undefined : await ownerAt(tx.q, hub_id, paid_at)
  const places: readonly Whereabouts[] = ownerId === undefined ? await everyOwner(tx) : [{ ownerId }]
  const ids = places.flatMap((place) => ('ownerId' in place ? place.ownerId : []))
  // Two processes may find orphans of one hub at the same time, and its alarm may not exist yet.
  for (const id of ids)
    await tx.forUpdate(tx.q.selectFrom('owners').select('id').where('id', '=', id)).execute()
  return ids
}

const incidentOf = (ownerId: number, hubId: number | null) =>
  ({
    ownerId,
    kind: 'payment_orphaned',
    incident: hubId === null ? 'payments' : `payments of hub ${hubId}`,
  }) as const

/** An earlier version of the service raised an alarm for each payment. */
const endFormer = (tx: Tx, context: CloudContext, ownerId: number, ref: string | null): Promise<void> =>
  clearAlarm(tx, context, { ownerId, kind: 'payment_orphaned', subject: `payment ${ref}` })

interface Shown {
  ownerId: number
  orphan: OrphanedPayment
  /** Absent: the orphan is closed. */
  taken?: { ref: string; failure: string | null }
}

/** Raises, changes or ends the alarm of the orphans of a hub. */
async function show(tx: Tx, context: CloudContext, { ownerId, orphan, taken }: Shown): Promise<void> {
  const incident = incidentOf(ownerId, orphan.hub_id)
  const last = await latestAlarm(tx, { ...incident, subject: null })
  const former = last?.endedAt === null ? last.details : undefined
  if (!taken && !former) return
  const { payments, count } = await present(tx, { ownerId, orphan, ...(taken && { taken }) }, former)
  const [first] = payments
  if (!first) return clearAlarm(tx, context, { ...incident, subject: null })
  const failure = first.refund_failure === null ? [] : [`its refund failed: ${first.refund_failure}`]
  const more = count === 1 ? [] : [`one of ${count} payments; larder payments orphaned lists them`]
  await raiseAlarm(tx, context, {
    ...incident,
    subject: `payment ${first.ref}`,
    detail: [...failure, ...more].join('; '),
    details: { ...first, count, payments },
    since: Date.parse(first.paid_at),
    refreshes: true,
  })
}

/** The orphans whose money the processor has, as far as the service has asked: those of the alarm before, and `taken`. */
async function present(
  tx: Tx,
  { ownerId, orphan, taken }: Shown,
  former: Record<string, unknown> | undefined,
): Promise<{ payments: Listed[]; count: number }> {
  const before = (former?.['payments'] ?? []) as Listed[]
  const isComplete = Number(former?.['count'] ?? 0) <= before.length
  const failures = new Map(before.map(({ ref, refund_failure }) => [ref, refund_failure]))
  if (taken) failures.set(taken.ref, taken.failure)
  let own = openOrphans(tx.q).where('p.hub_id', orphan.hub_id === null ? 'is' : '=', orphan.hub_id)
  if (orphan.hub_id !== null && (await ownerAt(tx.q, orphan.hub_id, orphan.paid_at)) !== undefined)
    own = own.where(within('p.paid_at', await readTenures(tx.q, { ownerId, hubs: '*' }, orphan.hub_id)))
  if (!taken) own = own.where('p.id', '<>', orphan.id)
  const rows = await own.limit(MOST_PAYMENTS + 1).execute()
  const isLong = rows.length > MOST_PAYMENTS
  const meant = rows.filter(({ processor_ref: ref }) => isLong || !isComplete || failures.has(ref))
  const payments = meant
    .slice(0, MOST_PAYMENTS)
    .map((row) => listed(row, failures.get(row.processor_ref) ?? null))
  if (!isLong) return { payments, count: payments.length }
  const { count } = await own
    .clearSelect()
    .clearOrderBy()
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return { payments, count }
}
