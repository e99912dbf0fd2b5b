import { type Expression, type RawBuilder, sql } from 'kysely'
import { isWithheld } from './withheld.ts'

/** How many units there are, as expressions of SQL: on a row, and of a product for sale. */

/** What has moved since a count `c` was typed, of all that it counted or of one row of `stock_ledger`. */
export const movedSince = sql<number>`coalesce((
  select sum(l.delta) from stock_ledger as l
  where l.id > c.ledger_from and l.product_id = c.product_id and l.hub_id = c.hub_id
    and l.at > c.counted_at and l.kind in ('dropped', 'restocked')
    and (c.cabinet is null or (l.cabinet = c.cabinet and l.shelf = c.shelf and l."row" = c."row"))), 0)`

/** A product that stands in one row alone, by the id that an expression gives: what it has the row has. */
export const isInOneRow = (product: Expression<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(select count(*) from facings as f where f.product_id = ${product}) = 1`

/**
 * What a row of `facings` holds: as its hub said, or by the latest count that the hub has not confirmed yet and what has moved
 * since. How a count of a product is spread over several rows its hub says.
 */
export const shownUnits: RawBuilder<number> = sql<number>`coalesce(
  (select c.quantity + ${movedSince} from stock_counts as c
    where c.hub_id = facings.hub_id and c.product_id = facings.product_id and c.settled_at is null
      and (c.cabinet = facings.cabinet and c.shelf = facings.shelf and c."row" = facings."row"
        or c.cabinet is null and ${isInOneRow(sql`c.product_id`)})
    order by c.counted_at desc, c.count_id desc limit 1),
  facings.quantity)`

/** The open operations of a product of which nobody knows whether a unit fell. */
const openOperations = sql`select 1 from unknown_operations
  where unknown_operations.product_id = products.id and unknown_operations.settled_at is null`

/** What can still be sold of a product of a hub that withholds something, or that has open operations. */
const unitsBesideWithheld = sql<number>`(case
  when exists (select 1 from facings where facings.product_id = products.id and not ${isWithheld('facings')})
  then products.quantity - products.reserved - (
    select coalesce(sum(${shownUnits}), 0) from facings
    where facings.product_id = products.id and ${isWithheld('facings')}
  ) - (
    select count(*) from unknown_operations
    where unknown_operations.product_id = products.id and unknown_operations.settled_at is null
      and not ${isWithheld('unknown_operations')})
  else 0 end)`

/**
 * What can still be sold of a product: what is on the shelf, less what is reserved, less what stands where nothing is sold
 * from (`withheld.ts`), and the units of which nobody knows whether they fell and whose rows the hub has yet to block. A count that
 * its hub has not taken in opens no row: of a product all of whose facings are withheld nothing is sold. An expression over a
 * row of `products`; below 0 where more is reserved than can be had. Where nothing is withheld and nothing unknown, as nearly
 * always, the facings need not be looked at one by one.
 */
export const availableUnits: RawBuilder<number> = sql<number>`(case
  when exists (select 1 from withheld where withheld.hub_id = products.hub_id) or exists (${openOperations})
  then ${unitsBesideWithheld}
  when exists (select 1 from facings where facings.product_id = products.id)
  then products.quantity - products.reserved
  else 0 end)`
