import { sql } from 'kysely'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import { statement } from '../platform/store/statement.ts'
import { planDeliveries } from './plan-deliveries.ts'
import { planMails } from './plan-mails.ts'

/**
 * Gives the events that have been committed their positions, in which everybody is told of them, and makes what webhooks
 * are told of due.
 *
 * Ids cannot be the order of readers: PostgreSQL shows what is committed, and of two transactions the one that took its id
 * (or its `seq`) first may commit last. A reader that has gone on to the later one would never see the other. So nobody
 * reads by id: whoever publishes holds the one row of `event_head`, looks at what has no position yet, which is what was
 * committed before that look, and numbers it. Whatever is committed later gets a later number, and readers that go by
 * numbers miss nothing.
 *
 * Within one look `seq` decides. The database gave it when the event was written, and what a change's transaction wrote
 * before its commit is below whatever a transaction writes that saw the change: a refund never comes before its payment,
 * however the clocks of two processes differ.
 *
 * The other ways: a lock of each owner from its first event to the commit would make all changes of an owner wait for one
 * another's commits; the horizon of running transactions (`pg_snapshot_xmin`) puts events in the order in which
 * transactions began, so that a refund may come before its payment, and stops for as long as any transaction hangs.
 */
export async function publish(context: CloudContext): Promise<void> {
  while (await publishBatch(context));
}

/** The last position that was given. */
export async function lastPosition(q: Queries): Promise<number> {
  const [head] = await readHead(q, {})
  return head?.last ?? 0
}

const readHead = statement((q) => q.selectFrom('event_head').select('last'))

/** True where there may be more. */
async function publishBatch(context: CloudContext): Promise<boolean> {
  const { db, settings } = context
  if (!(await hasUnpublished(db.kysely))) return false
  return db.transact(async (tx) => {
    // One after the other: until the end of the transaction nobody else gives positions to what is read under the lock.
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

/** Before anything was ever published; of several processes one has written it. */
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
