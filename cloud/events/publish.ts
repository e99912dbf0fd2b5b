import { sql, type Selectable } from 'kysely'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset, numbersIn, textsIn } from '../platform/store/recordset.ts'
import { statement, allOf } from '../platform/store/statement.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Tables } from '../platform/store/schema.ts'
import { schedule, scheduleAlong } from '../platform/work/queue.ts'
import { alarmKinds, isAsBadAs } from '../../protocol/model/alarms.ts'
import type { Alarm } from '../../protocol/contract/owner-alarms.ts'

/**
 * Assigns positions to committed events and schedules their deliveries to webhooks. Readers read in the order of
 * positions.
 *
 * The order of ids would lose events. PostgreSQL shows only committed rows, and the transaction that took its id (or
 * its `seq`) first may commit last. A reader that has read the later id would never see the earlier one. So a publisher
 * locks the only row of `event_head`, reads the events without a position, and numbers them. Whatever commits later
 * gets a later number, and readers miss nothing.
 *
 * Within one batch, `seq` decides, which the database assigned when the event was written. A transaction that saw a
 * change writes higher values than the change's own transaction. So a refund never comes before its payment, however
 * the clocks of two processes differ.
 *
 * Rejected alternatives: a lock for each owner from the first event to the commit would make all changes of an owner
 * wait for each other's commits. The horizon of running transactions (`pg_snapshot_xmin`) orders events by the begin of
 * their transactions, so a refund may come before its payment; and it stops while any transaction hangs.
 */
export async function publish(context: CloudContext): Promise<void> {
  if (await hasUnpublished(context.db.kysely)) await publishAll(context)
}

/** Publishes when the caller knows that there are events. Returns the last assigned position. */
export async function publishAll(context: CloudContext): Promise<number> {
  let batch: PublishedBatch
  do batch = await publishBatch(context)
  while (batch.isFull)
  return batch.last
}

/** The last assigned position. */
export async function lastPosition(q: Queries): Promise<number> {
  const [head] = await readHead(q, {})
  return head?.last ?? 0
}

const readHead = statement((q) => q.selectFrom('event_head').select('last'))

interface PublishedBatch {
  /** There may be more events. */
  isFull: boolean
  /** The last assigned position. */
  last: number
}

function publishBatch(context: CloudContext): Promise<PublishedBatch> {
  const { db, settings } = context
  return db.transact(async (tx) => {
    // In sequence: the rows are read under the lock, and no other process assigns positions until the end of the
    // transaction.
    const [[head], rows] = await Promise.all([
      headToLock(tx.q, {}),
      firstUnpublished(tx.q, { limit: settings.eventBatch }),
    ])
    if (!head) {
      await beginHead(tx)
      return { isFull: true, last: 0 }
    }
    const last = head.last + rows.length
    if (rows.length === 0) return { isFull: false, last }
    const published = rows.map((row, index) => ({ ...row, position: head.last + index + 1 }))
    await Promise.all([
      place(tx.q, { places: published.map(({ seq, position }) => ({ seq, position })) }),
      moveHead(tx.q, { last }),
      planDeliveries(tx, context, published),
    ])
    await planMails(tx, context, published)
    return { isFull: rows.length === settings.eventBatch, last }
  })
}

const unpublished = (q: Queries) => q.selectFrom('events').where('position', 'is', null)

const hasUnpublished = async (q: Queries): Promise<boolean> => (await anyUnpublished(q, {})).length > 0

const anyUnpublished = statement((q) => unpublished(q).select('seq').limit(1))
const firstUnpublished = statement((q, { limit }: { limit: number }) =>
  unpublished(q).select(['seq', 'type', 'owner_id', 'hub_id', 'endpoint_id']).orderBy('seq').limit(limit),
)

const place = statement(
  (_, { places }: { places: readonly { seq: number; position: number }[] }, { kind }) =>
    sql`update events set position = r.position
      from ${recordset(kind, { seq: 'int', position: 'int' }, places)} where events.seq = r.seq`,
)
const moveHead = statement((q, { last }: { last: number }) => q.updateTable('event_head').set({ last }))

/** Creates the row before the first event; one of several processes succeeds. */
async function beginHead(tx: Tx): Promise<void> {
  await tx.q
    .insertInto('event_head')
    .values({ id: 1, last: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

const headToLock = statement((q, _, locks) =>
  locks.forUpdate(q.selectFrom('event_head').select('last').where('id', '=', 1)),
)

export type EndpointRow = Selectable<Tables['webhook_endpoints']>
type Published = Pick<
  Selectable<Tables['events']>,
  'seq' | 'type' | 'owner_id' | 'hub_id' | 'endpoint_id'
> & {
  position: number
}

/** The due work of one webhook. Each has its own kind, so that a webhook that hangs delays no other. */
export const workOf = (endpointId: string): string => `webhook/${endpointId}`

/**
 * Schedules the deliveries of events to webhooks, in the transaction that publishes the events: each event once for
 * each webhook.
 */
async function planDeliveries(
  tx: Tx,
  { runtime }: CloudContext,
  events: readonly Published[],
): Promise<void> {
  // A test is sent to a disabled webhook too.
  const tested = events.flatMap(({ endpoint_id }) => endpoint_id ?? [])
  // A webhook that its owner deletes at this moment must not block these events for others.
  const owners = new Set(events.map(({ owner_id }) => owner_id))
  const endpoints = await endpointsFor(tx.q, { tested, owners: [...owners] })
  const now = runtime.clock.now()
  for (const endpoint of endpoints) {
    const isWanted = wantedBy(endpoint)
    const deliveries = events.filter(isWanted).map(({ seq, position }) => ({
      id: `dlv_${position.toString(16).padStart(12, '0')}${randomHex(runtime.random, 4)}`,
      endpoint_id: endpoint.id,
      event_seq: seq,
      state: 'pending' as const,
      attempts: '[]',
      tries: 0,
      next_attempt_at: now,
    }))
    if (deliveries.length === 0) continue
    await tx.q.insertInto('webhook_deliveries').values(deliveries).execute()
    await schedule(
      tx,
      workOf(endpoint.id),
      deliveries.map(({ id }) => id),
      now,
    )
  }
}

const endpointsFor = statement(
  (q, { tested, owners }: { tested: readonly string[]; owners: readonly number[] }, locks) =>
    locks.forKeyShare(
      q
        .selectFrom('webhook_endpoints')
        .select(allOf('webhook_endpoints'))
        .where((eb) => eb.or([eb('state', '=', 'enabled'), eb('id', 'in', textsIn(q, tested))]))
        .where('owner_id', 'in', numbersIn(q, owners))
        .orderBy('id'),
    ),
)

export const listOf = <T>(json: string): T[] => JSON.parse(json) as T[]

/** The events that a webhook subscribes to. */
function wantedBy({ id, owner_id, event_types, hub_ids, state }: EndpointRow): (event: Published) => boolean {
  const types = new Set(listOf<string>(event_types))
  const hubs = new Set(listOf<number>(hub_ids))
  return (event) => {
    if (event.owner_id !== owner_id) return false
    if (event.endpoint_id !== null) return event.endpoint_id === id
    if (state === 'disabled') return false
    if (!types.has('*') && !types.has(event.type)) return false
    return hubs.size === 0 || (event.hub_id !== null && hubs.has(event.hub_id))
  }
}

/** The due work of one contact, by its id. One mail contains all news for the contact. */
export const MAIL_WORK = 'alarm.mail'

/**
 * Schedules the mails about alarms, in the transaction that publishes their events: the beginning and the end of an
 * incident.
 */
async function planMails(
  tx: Tx,
  { runtime, settings }: CloudContext,
  events: readonly { seq: number; type: string; owner_id: number }[],
): Promise<void> {
  const reported = events.filter(({ type }) => type === 'alarm.raised' || type === 'alarm.cleared')
  if (reported.length === 0) return
  // As for webhooks: a contact that is deleted at this moment must not block others.
  const contacts = await tx
    .forKeyShare(
      tx.q
        .selectFrom('alarm_contacts')
        .select(['id', 'owner_id', 'severity'])
        .where('owner_id', 'in', [...new Set(reported.map(({ owner_id }) => owner_id))])
        .where('confirmed_at', 'is not', null)
        .orderBy('id'),
    )
    .execute()
  if (contacts.length === 0) return
  const rows = await tx.q
    .selectFrom('events')
    .select(['seq', 'data'])
    .where(
      'seq',
      'in',
      reported.map(({ seq }) => seq),
    )
    .execute()
  const alarms = new Map(rows.map(({ seq, data }) => [seq, JSON.parse(data) as Alarm]))
  const dueAt = runtime.clock.now() + settings.mailGatherMs
  for (const contact of contacts) {
    const mails = reported
      .filter(
        ({ owner_id, seq, type }) =>
          owner_id === contact.owner_id && isNews(alarms.get(seq)!, type, contact.severity),
      )
      .map(({ seq }) => ({ contact_id: contact.id, event_seq: seq, mail_id: null }))
    if (mails.length === 0) continue
    await tx.q.insertInto('alarm_mails').values(mails).execute()
    // A mail that already waits includes these alarms and is not delayed by them.
    await scheduleAlong(tx, MAIL_WORK, contact.id, dueAt)
  }
}

/**
 * Whether a contact is notified of an alarm. An alarm is raised above the severity of its kind only if it becomes worse:
 * contacts for the first severity know it already.
 */
function isNews({ kind, severity }: Alarm, type: string, wanted: Alarm['severity']): boolean {
  const first = alarmKinds[kind].severity
  const isKnown = type === 'alarm.raised' && severity !== first && isAsBadAs(first, wanted)
  return isAsBadAs(severity, wanted) && !isKnown
}
