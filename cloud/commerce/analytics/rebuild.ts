import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { refreshSales } from './refresh-sales.ts'

/** Orders in one transaction: few enough that customers' requests hardly wait. */
const BATCH = 500

/** Builds the summaries of a hub's sales again if they use another time zone than the hub, or are missing. */
export const salesWork = (context: CloudContext): WorkKinds => ({
  'sales.calendars': { recurring: ['all'], run: () => findStale(context) },
  'sales.rebuild': { run: ({ subject }) => rebuildStale(context, Number(subject)) },
})

const staleHubs = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('sales_calendars as c', 'c.hub_id', 'hubs.id')
    .select('hubs.id')
    .where((eb) =>
      eb.or([
        eb('c.is_whole', 'is', null),
        eb('c.is_whole', '=', 0),
        eb('c.timezone', '<>', eb.ref('hubs.timezone')),
      ]),
    )
    .orderBy('hubs.id')

async function findStale({ db, runtime, settings }: CloudContext): Promise<Outcome> {
  const now = runtime.clock.now()
  const stale = await staleHubs(db.kysely).execute()
  await db.transact((tx) =>
    schedule(
      tx,
      'sales.rebuild',
      stale.map(({ id }) => id),
      now,
    ),
  )
  return { next: now + settings.staleSalesMs }
}

async function rebuildStale({ db, log, checkpoint }: CloudContext, hubId: number): Promise<Outcome> {
  const isStale = await staleHubs(db.kysely).where('hubs.id', '=', hubId).executeTakeFirst()
  if (!isStale) return done
  log.info({ hubId }, 'the summaries of a hub’s sales are rebuilt')
  await rebuild(hubId, async (step) => {
    const value = await db.transact(step)
    checkpoint('analytics.rebuild-step')
    return value
  })
  return { next: null, affected: [hubId] }
}

/** Builds a hub's summaries in one transaction, for a past that is written as a whole. */
export const rebuildSales = (tx: Tx, hubId: number): Promise<void> => rebuild(hubId, (step) => step(tx))

type Run = <T>(step: (tx: Tx) => Promise<T>) => Promise<T>

/**
 * Builds a hub's summaries again from its orders. The steps of due work are many short transactions, while orders
 * arrive. Each order is counted once. Until the end the figures are too low, and every answer reports that
 * (`reports.ts`). Due work restarts an interrupted run.
 */
async function rebuild(hubId: number, run: Run): Promise<void> {
  const number = await run((tx) => clear(tx, hubId))
  let last: number | undefined = 0
  while (last !== undefined) {
    const after: number = last
    last = await run((tx) => countBatch(tx, hubId, after))
  }
  await run((tx) => finish(tx, hubId, number))
}

/**
 * Deletes the summaries. From now on sales are counted in the hub's present time zone. Returns the number of this run.
 */
async function clear({ q }: Tx, hubId: number): Promise<number> {
  const { timezone } = await q
    .selectFrom('hubs')
    .select('timezone')
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  // The first write, because changes of the summaries wait for this row.
  const { run } = await q
    .insertInto('sales_calendars')
    .values({ hub_id: hubId, timezone, is_whole: 0, run: 1 })
    .onConflict((conflict) =>
      conflict
        .column('hub_id')
        .doUpdateSet((eb) => ({ timezone, is_whole: 0, run: eb('sales_calendars.run', '+', 1) })),
    )
    .returning('run')
    .executeTakeFirstOrThrow()
  await q.deleteFrom('sales_totals').where('hub_id', '=', hubId).execute()
  await q.deleteFrom('sales_days').where('hub_id', '=', hubId).execute()
  await q.deleteFrom('sales_customers').where('hub_id', '=', hubId).execute()
  await q.deleteFrom('sales').where('hub_id', '=', hubId).execute()
  return run
}

/** Counts the next orders of a hub; returns the last one's id, or undefined at the end. */
async function countBatch(tx: Tx, hubId: number, after: number): Promise<number | undefined> {
  const orders = tx.q
    .selectFrom('orders')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(BATCH)
  const ids = (await tx.forUpdate(orders).execute()).map(({ id }) => id)
  if (ids.length > 0) await refreshSales(tx, ids)
  return ids.at(-1)
}

/** Ends the run, unless another process has begun a newer one. */
async function finish({ q }: Tx, hubId: number, run: number): Promise<void> {
  await q
    .updateTable('sales_calendars')
    .set({ is_whole: 1 })
    .where('hub_id', '=', hubId)
    .where('run', '=', run)
    .execute()
}
