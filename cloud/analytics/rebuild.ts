import type { CloudContext } from '../context.ts'
import type { CloudDatabase } from '../store/database.ts'
import { refreshSales } from './refresh-sales.ts'

/** Orders in a transaction: few enough that customers' requests hardly wait. */
const BATCH = 500

/** Makes the summaries anew of every hub whose time zone is not the one they are kept in, and of those that have none. */
export async function rebuildStaleSales(context: CloudContext): Promise<number[]> {
  const stale = await context.db.kysely
    .selectFrom('hubs')
    .leftJoin('sales_calendars as c', 'c.hub_id', 'hubs.id')
    .select('hubs.id')
    .where((eb) => eb.or([eb('c.timezone', 'is', null), eb('c.timezone', '<>', eb.ref('hubs.timezone'))]))
    .orderBy('hubs.id')
    .execute()
  for (const { id } of stale) {
    context.log.info({ hubId: id }, 'the summaries of a hub are made anew')
    await rebuildSales(context.db, id, context.checkpoint)
  }
  return stale.map(({ id }) => id)
}

/**
 * Makes a hub's summaries anew from its orders, in many short transactions, while orders come in: each order is counted
 * once, by whoever is first. Until it is through the figures are too low. Interrupted, it begins again (`rebuildStaleSales`).
 */
export async function rebuildSales(
  db: CloudDatabase,
  hubId: number,
  checkpoint: CloudContext['checkpoint'] = () => {},
): Promise<void> {
  const begun = await clear(db, hubId)
  for (let after = 0; ;) {
    const ids = await countBatch(db, hubId, after)
    checkpoint('analytics.batch-counted')
    if (ids.length === 0) break
    after = ids.at(-1)!
  }
  // Not if another process has begun meanwhile: it is the one to say when it is through.
  await db.kysely
    .updateTable('sales_calendars')
    .set({ timezone: begun.timezone })
    .where('hub_id', '=', hubId)
    .where('run', '=', begun.run)
    .execute()
}

function clear(db: CloudDatabase, hubId: number): Promise<{ run: number; timezone: string }> {
  return db.transact(async (tx) => {
    const { timezone } = await tx
      .forUpdate(tx.q.selectFrom('hubs').select('timezone').where('id', '=', hubId))
      .executeTakeFirstOrThrow()
    await tx.q.deleteFrom('sales_totals').where('hub_id', '=', hubId).execute()
    await tx.q.deleteFrom('sales_customers').where('hub_id', '=', hubId).execute()
    await tx.q
      .deleteFrom('sales')
      .where('order_id', 'in', (eb) => eb.selectFrom('orders').select('id').where('hub_id', '=', hubId))
      .execute()
    const { run } = await tx.q
      .insertInto('sales_calendars')
      .values({ hub_id: hubId, timezone: null, run: 1 })
      .onConflict((conflict) =>
        conflict
          .column('hub_id')
          .doUpdateSet((eb) => ({ timezone: null, run: eb('sales_calendars.run', '+', 1) })),
      )
      .returning('run')
      .executeTakeFirstOrThrow()
    return { run, timezone }
  })
}

/** The next orders of a hub by id, counted; none at the end. */
function countBatch(db: CloudDatabase, hubId: number, after: number): Promise<number[]> {
  return db.transact(async (tx) => {
    const rows = await tx
      .forUpdate(
        tx.q
          .selectFrom('orders')
          .select('id')
          .where('hub_id', '=', hubId)
          .where('id', '>', after)
          .orderBy('id')
          .limit(BATCH),
      )
      .execute()
    const ids = rows.map(({ id }) => id)
    if (ids.length > 0) await refreshSales(tx, ids)
    return ids
  })
}
