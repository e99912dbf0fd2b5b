import { sql, type Expression, type RawBuilder } from 'kysely'
import type { State } from '../../../protocol/mqtt/hub-entries.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readFridges } from './layout.ts'

/**
 * The units that can be sold: SQL expressions for their numbers, in a row and of a product, and the blocked places. From a
 * blocked place nothing is sold although it may have stock. The owner blocks it (a disabled fridge), or the hub does: a
 * row is blocked, a cabinet's controller is silent, a fridge was too warm.
 */

/** Stands for every shelf and row of a cabinet. */
export const WHOLE = { shelf: 0, row: 0 } as const

/** Whether a place is blocked: an expression over a row of a table with columns for a hub and a place. */
export function isBlocked(table: 'facings' | 'unknown_operations'): RawBuilder<boolean> {
  const place = sql.table(table)
  return sql<boolean>`exists (
    select 1 from blocked_places where blocked_places.hub_id = ${place}.hub_id and blocked_places.cabinet = ${place}.cabinet
      and ((blocked_places.shelf = ${place}.shelf and blocked_places."row" = ${place}."row")
        or blocked_places.shelf = ${sql.lit(WHOLE.shelf)}))`
}

/** Records the blocked cabinets for the disabled fridges. */
export async function blockDisabled(
  tx: Tx,
  hubId: number,
  disabledFridges: readonly number[],
  now: number,
): Promise<void> {
  const disabled = (await readFridges(tx.q, hubId)).filter(({ fridge }) => disabledFridges.includes(fridge))
  const cabinets = new Set(disabled.flatMap(({ left, middle, right }) => [left, middle, right]))
  const known = await tx.q
    .deleteFrom('blocked_places')
    .where('hub_id', '=', hubId)
    .where('source', '=', 'owner')
    .returning(['cabinet', 'since'])
    .execute()
  const since = new Map(known.map((row) => [row.cabinet, row.since]))
  if (cabinets.size > 0)
    await tx.q
      .insertInto('blocked_places')
      .values(
        [...cabinets].map((cabinet) => ({
          hub_id: hubId,
          source: 'owner' as const,
          cabinet,
          ...WHOLE,
          reason: 'disabled',
          since: since.get(cabinet) ?? now,
        })),
      )
      .execute()
}

/** Records a hub's state of a row or a cabinet. */
export async function applyShelfState(
  tx: Tx,
  hubId: number,
  state: Extract<State, { of: 'row' | 'cabinet' }>,
): Promise<void> {
  const place = state.of === 'row' ? state.location : { cabinet: state.cabinet, ...WHOLE }
  const reason = state.of === 'row' ? state.blocked : state.withheld
  await tx.q
    .deleteFrom('blocked_places')
    .where('source', '=', 'hub')
    .where((eb) => eb.and({ hub_id: hubId, ...place }))
    .execute()
  if (reason !== null)
    await tx.q
      .insertInto('blocked_places')
      .values({ hub_id: hubId, source: 'hub', ...place, reason, since: Math.round(state.since) })
      .execute()
}

/** Deletes the states of a hub's rows and cabinets. */
export async function deleteShelfStates(tx: Tx, hubId: number): Promise<void> {
  await tx.q.deleteFrom('blocked_places').where('hub_id', '=', hubId).where('source', '=', 'hub').execute()
}

/** The movements since a count `c`, of everything that it counted or of one row of `stock_ledger`. */
export const movedSince = sql<number>`coalesce((
  select sum(l.delta) from stock_ledger as l
  where l.id > c.ledger_from and l.product_id = c.product_id and l.hub_id = c.hub_id
    and l.at > c.counted_at and l.kind in ('dropped', 'restocked')
    and (c.cabinet is null or (l.cabinet = c.cabinet and l.shelf = c.shelf and l."row" = c."row"))), 0)`

/**
 * Whether a product has only one row. The expression gives the product's id. The stock of the product is then the stock
 * of the row.
 */
export const isInOneRow = (product: Expression<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(select count(*) from facings as f where f.product_id = ${product}) = 1`

/**
 * The stock of a row of `facings`: the hub's last report, or the latest unconfirmed count plus later movements. Only
 * the hub can spread a count over several rows.
 */
export const shownUnits: RawBuilder<number> = sql<number>`coalesce(
  (select c.quantity + ${movedSince} from stock_counts as c
    where c.hub_id = facings.hub_id and c.product_id = facings.product_id and c.settled_at is null
      and (c.cabinet = facings.cabinet and c.shelf = facings.shelf and c."row" = facings."row"
        or c.cabinet is null and ${isInOneRow(sql`c.product_id`)})
    order by c.counted_at desc, c.count_id desc limit 1),
  facings.quantity)`

/** The open operations of a product: its unit may have fallen. */
const openOperations = sql`select 1 from unknown_operations
  where unknown_operations.product_id = products.id and unknown_operations.settled_at is null`

/** The sellable units of a product if its hub has blocked rows or open operations. */
const unitsBesideWithheld = sql<number>`(case
  when exists (select 1 from facings where facings.product_id = products.id and not ${isBlocked('facings')})
  then products.quantity - products.reserved - (
    select coalesce(sum(${shownUnits}), 0) from facings
    where facings.product_id = products.id and ${isBlocked('facings')}
  ) - (
    select count(*) from unknown_operations
    where unknown_operations.product_id = products.id and unknown_operations.settled_at is null
      and not ${isBlocked('unknown_operations')})
  else 0 end)`

/**
 * The sellable units of a product, over a row of `products`: units on the shelf, minus reserved units, minus units in
 * blocked places, minus unconfirmed units in rows that the hub has not blocked yet. An unconfirmed
 * count does not unblock a row: if all facings of a product are blocked, nothing is sold. Below 0 if more units are
 * reserved than available. Without blocked places and open operations, which is the usual case, the facings are not
 * read one by one.
 */
export const availableUnits: RawBuilder<number> = sql<number>`(case
  when exists (select 1 from blocked_places where blocked_places.hub_id = products.hub_id) or exists (${openOperations})
  then ${unitsBesideWithheld}
  when exists (select 1 from facings where facings.product_id = products.id)
  then products.quantity - products.reserved
  else 0 end)`
