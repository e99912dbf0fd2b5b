import { SEARCH_TEXT_VERSION, searchText } from '../../../protocol/model/search-text.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { CloudDatabase } from '../../platform/store/database.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'

/** Rows in one transaction: few enough that customers' requests hardly wait. */
const BATCH = 500
const YEAR_MS = 365 * 86_400_000

/**
 * Computes stored search texts again if an older version of `searchText` made them. The subject is the version, so that
 * each new version runs once, in the background.
 */
export const searchNameWork = (context: CloudContext): WorkKinds => ({
  'catalogue.search-names': {
    recurring: [`v${SEARCH_TEXT_VERSION}`],
    run: ({ subject }) => refresh(context, subject),
  },
})

async function refresh({ db, runtime, log }: CloudContext, subject: string): Promise<Outcome> {
  if (subject !== `v${SEARCH_TEXT_VERSION}`) return done
  const changed = (await inBatches(refreshProducts, db)) + (await inBatches(refreshSoldNames, db))
  if (changed > 0) log.info({ changed }, 'stored search texts were made again')
  return { next: runtime.clock.now() + YEAR_MS }
}

/** Handles the rows after an id. */
type Batch = (db: CloudDatabase, after: number) => Promise<{ last: number | undefined; changed: number }>

async function inBatches(batch: Batch, db: CloudDatabase): Promise<number> {
  let sum = 0
  for (let after = 0; ;) {
    const { last, changed } = await batch(db, after)
    sum += changed
    if (last === undefined) return sum
    after = last
  }
}

async function refreshProducts(db: CloudDatabase, after: number): ReturnType<Batch> {
  const rows = await db.kysely
    .selectFrom('products')
    .select(['id', 'name', 'search_name'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(BATCH)
    .execute()
  const stale = rows.filter(({ name, search_name }) => searchText(name) !== search_name)
  if (stale.length > 0)
    await db.transact(async (tx) => {
      for (const { id, name } of stale)
        await tx.q
          .updateTable('products')
          .set({ search_name: searchText(name) })
          .where('id', '=', id)
          .where('name', '=', name)
          .execute()
    })
  return { last: rows.at(-1)?.id, changed: stale.length }
}

/** Merges names that are now equal into one row, and changes the lines of orders that used the other row. */
async function refreshSoldNames(db: CloudDatabase, after: number): ReturnType<Batch> {
  const rows = await db.kysely
    .selectFrom('sold_names')
    .select(['id', 'hub_id', 'upc', 'search_name'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(BATCH)
    .execute()
  // Folding a folded text again gives the same result as folding the name.
  const stale = rows.filter(({ search_name }) => searchText(search_name) !== search_name)
  for (const { id, hub_id, upc, search_name } of stale)
    await db.transact(async (tx) => {
      const name = { hub_id, upc, search_name: searchText(search_name) }
      await tx.q
        .insertInto('sold_names')
        .values(name)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      const { id: kept } = await tx.q
        .selectFrom('sold_names')
        .select('id')
        .where('hub_id', '=', hub_id)
        .where('upc', '=', upc)
        .where('search_name', '=', name.search_name)
        .executeTakeFirstOrThrow()
      await tx.q
        .updateTable('order_items')
        .set({ sold_name_id: kept })
        .where('sold_name_id', '=', id)
        .execute()
      await tx.q.deleteFrom('sold_names').where('id', '=', id).execute()
    })
  return { last: rows.at(-1)?.id, changed: stale.length }
}
