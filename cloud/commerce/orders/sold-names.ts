import { sql, type RawBuilder } from 'kysely'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { jsonOf } from '../../platform/store/json.ts'
import { normalUpc } from '../../../protocol/model/upc.ts'
import { containsPattern, isLike, prefixPattern } from '../../platform/store/like.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { statement } from '../../platform/store/statement.ts'
import { searchText } from '../../../protocol/model/search-text.ts'

/**
 * The names under which a hub has sold products, for searching its orders. Their number depends on products and
 * renamings, not on sales. So a search can compare all of them with any part of a word.
 */

/** The key of a name within its hub. */
export interface SoldName {
  upc: string
  search_name: string
}

export const soldName = ({ upc, name }: { upc: string; name: string }): SoldName => ({
  upc,
  search_name: searchText(name),
})

/** The id of a name from the columns of a `recordset` row; null if the hub has not sold under it before. */
export const soldNameId = (hubId: unknown): RawBuilder<number | null> => sql`(
  select s.id from sold_names as s
  where s.hub_id = ${hubId} and s.upc = r.upc and s.search_name = r.search_name)`

/** The id of each line's name. Adds new names. */
export async function soldNames(
  tx: Tx,
  hubId: number,
  lines: readonly { upc: string; name: string }[],
): Promise<number[]> {
  const names = lines.map(soldName)
  await addSoldNames(tx, hubId, names)
  const source = recordset(
    tx.kind,
    { line: 'int', upc: 'text', search_name: 'text' },
    names.map((name, line) => ({ line, ...name })),
  )
  const { rows } = await sql<{ id: number }>`
    select ${soldNameId(sql.lit(hubId))} as id from ${source} order by r.line`.execute(tx.q)
  return rows.map(({ id }) => id)
}

export async function addSoldNames(tx: Tx, hubId: number, names: readonly SoldName[]): Promise<void> {
  const source = recordset(tx.kind, { upc: 'text', search_name: 'text' }, names)
  // `where true`, because SQLite would otherwise parse the conflict's "on" as a join's.
  await sql`
    insert into sold_names (hub_id, upc, search_name)
    select distinct ${sql.lit(hubId)}, r.upc, r.search_name from ${source} where true
    on conflict do nothing`.execute(tx.q)
}

export interface NameSearch {
  hubId: number
  /** A part of a name in any case, with or without accents, or the beginning of a UPC. */
  search: string
  /** How many names are compared, the most recently sold first. */
  names: number
  /** The newest orders below this id, up to `limit`. */
  below: number
  limit: number
}

interface Patterns extends Omit<NameSearch, 'search'> {
  contains: string
  prefix: string
}

/**
 * Lists of orders, one for each matching name among the newest orders. The cost depends on the number of names: an
 * index gives the last order of each matching name. More is read only for names with a last order among the newest.
 */
const ordersByName = statement((q, { hubId, contains, prefix, names, below, limit }: Patterns) => {
  const json = jsonOf(q)
  const tooOld = sql`select id from sold_names where hub_id = ${hubId} order by id desc limit 1 offset ${names}`
  const newest = sql`select i.order_id from order_items as i where i.sold_name_id = heads.id and i.order_id < ${below}
    order by i.order_id desc limit ${limit}`
  return q
    .with(
      (cte) => cte('fitting').materialized(),
      (db) =>
        db
          .selectFrom('sold_names')
          .select('id')
          .where('hub_id', '=', hubId)
          // The plus makes SQLite use the index of names and UPCs.
          .where(sql<boolean>`+id > coalesce((${tooOld}), 0)`)
          .where((eb) => eb.or([isLike('search_name', contains), isLike('upc', prefix)])),
    )
    .with(
      (cte) => cte('heads').materialized(),
      (db) =>
        db.selectFrom('fitting').select((eb) => [
          'fitting.id',
          eb
            .selectFrom('order_items as i')
            .select((item) => item.fn.max('i.order_id').as('last'))
            .whereRef('i.sold_name_id', '=', 'fitting.id')
            .where('i.order_id', '<', below)
            .as('last'),
        ]),
    )
    .selectFrom('heads')
    .select(
      json
        .text(
          json.nested(sql`select ${json.arrayOf(sql`n.order_id`, sql`n.order_id`)} from (${newest}) as n`),
        )
        .as('orders'),
    )
    .where(
      'last',
      '>=',
      sql<number>`(select min(last) from (
        select distinct last from heads where last is not null order by last desc limit ${limit}) as newest)`,
    )
})

/** The ids of a hub's newest orders below an id with an item of this name or UPC, the newest first. */
export async function ordersNamed(q: Queries, { search, ...bounds }: NameSearch): Promise<number[]> {
  const rows = await ordersByName(q, {
    ...bounds,
    contains: containsPattern(searchText(search)),
    prefix: prefixPattern(normalUpc(search)),
  })
  const ids = new Set(rows.flatMap(({ orders }) => JSON.parse(orders) as number[]))
  return [...ids].sort((a, b) => b - a).slice(0, bounds.limit)
}
