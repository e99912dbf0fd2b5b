import { sql } from 'kysely'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import { statement } from '../platform/store/statement.ts'
import { planDeliveries } from './plan-deliveries.ts'
import { planMails } from './plan-mails.ts'

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
  while (await publishBatch(context));
}

/** The last assigned position. */
export async function lastPosition(q: Queries): Promise<number> {
  const [head] = await readHead(q, {})
  return head?.last ?? 0
}

const readHead = statement((q) => q.selectFrom('event_head').select('last'))

/** Publishes one batch. True if there may be more. */
async function publishBatch(context: CloudContext): Promise<boolean> {
  const { db, settings } = context
  if (!(await hasUnpublished(db.kysely))) return false
  return db.transact(async (tx) => {
    // In sequence: the rows are read under the lock, and no other process assigns positions until the end of the
    // transaction.
    const [[head], rows] = await Promise.all([
      headToLock(tx.q, {}),
      firstUnpublished(tx.q, { limit: settings.eventBatch }),
    ])
    if (!head) {
      await beginHead(tx)
      return true
    }
    if (rows.length === 0) return false
    const published = rows.map((row, index) => ({ ...row, position: head.last + index + 1 }))
    await Promise.all([
      place(tx.q, { places: published.map(({ seq, position }) => ({ seq, position })) }),
      moveHead(tx.q, { last: head.last + rows.length }),
      planDeliveries(tx, context, published),
    ])
    await planMails(tx, context, published)
    return rows.length === settings.eventBatch
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
