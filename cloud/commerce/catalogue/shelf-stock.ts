import { sql } from 'kysely'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { StockCount } from '../../../protocol/mqtt/cloud-entries.ts'
import type { StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { ApplyError } from '../../gateway/domain.ts'
import { enqueue } from '../../gateway/outbox.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'

/**
 * A count that somebody typed: shown at once, and sent to the hub, which sets its stock to the count less what it dropped
 * after it. An earlier count of the product that the hub has not confirmed is out of date with it.
 */
export async function countStock(
  tx: Tx,
  runtime: Runtime,
  { hubId, productId, quantity }: { hubId: number; productId: number; quantity: number },
): Promise<StockCount> {
  const now = runtime.clock.now()
  const count = { count_id: uuidv7(runtime), product_id: productId, quantity, counted_at: now }
  await tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('product_id', '=', productId)
    .where('settled_at', 'is', null)
    .execute()
  const { newest } = await tx.q
    .selectFrom('stock_ledger')
    .select((eb) => eb.fn.max('id').as('newest'))
    .executeTakeFirstOrThrow()
  await tx.q
    .insertInto('stock_counts')
    .values({ ...count, hub_id: hubId, ledger_from: newest ?? 0, settled_at: null })
    .execute()
  await sumProducts(tx, [productId])
  await enqueue(tx, hubId, { kind: 'stock.count', count })
  return count
}

/** The hub has taken these counts in: from now on its ledger says what is there. Returns whose they were. */
export async function settleCounts(
  tx: Tx,
  hubId: number,
  entries: readonly StockEntry[],
  now: number,
): Promise<number[]> {
  const ids = new Set(entries.flatMap((entry) => (entry.kind === 'stock.counted' ? [entry.count_id] : [])))
  if (ids.size === 0) return []
  const settled = await tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .where('count_id', 'in', [...ids])
    .returning('product_id')
    .execute()
  return settled.map(({ product_id }) => product_id)
}

/** What a hub is not known to have taken in yet, oldest first; at most one count of each product. */
export async function pendingCounts(tx: Tx, hubId: number): Promise<StockCount[]> {
  return tx.q
    .selectFrom('stock_counts')
    .select(['count_id', 'product_id', 'quantity', 'counted_at'])
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .orderBy('counted_at')
    .execute()
}

/** What one facing of one product holds. */
export type FacingQuantity = {
  product_id: number
  cabinet: number
  shelf: number
  row: number
  quantity: number
}

/**
 * Writes what facings hold, and the products' sums. A facing that the planogram does not know is taken up as a further
 * one of its product; of one that has another product by now nothing is written. Returns the facings written, each with
 * what it held before.
 */
export async function setFacings<F extends FacingQuantity>(
  tx: Tx,
  hubId: number,
  facings: readonly F[],
): Promise<(F & { before: number })[]> {
  if (facings.length === 0) return []
  const known = await lockFacings(tx, hubId)
  await requireProducts(tx, hubId, new Set(facings.map(({ product_id }) => product_id)), known)
  const byLocation = new Map(known.map((facing) => [locationKey(facing), facing]))
  const written: (F & { before: number })[] = []
  const vacant: F[] = []
  for (const facing of facings) {
    const there = byLocation.get(locationKey(facing))
    if (!there) vacant.push(facing)
    if (!there || there.product_id === facing.product_id)
      written.push({ ...facing, before: there?.quantity ?? 0 })
  }
  if (vacant.length > 0)
    await tx.q
      .insertInto('facings')
      .values(
        vacant.map(({ product_id, cabinet, shelf, row, quantity }) => ({
          hub_id: hubId,
          product_id,
          cabinet,
          shelf,
          row,
          quantity,
          is_primary: 0 as const,
        })),
      )
      .execute()
  const source = recordset(
    tx.kind,
    { product_id: 'int', cabinet: 'int', shelf: 'int', row: 'int', quantity: 'int' },
    written.map(({ product_id, cabinet, shelf, row, quantity }) => ({
      product_id,
      cabinet,
      shelf,
      row,
      quantity,
    })),
  )
  await sql`
    update facings set quantity = r.quantity from ${source}
    where facings.hub_id = ${hubId} and facings.cabinet = r.cabinet and facings.shelf = r.shelf
      and facings."row" = r."row" and facings.product_id = r.product_id`.execute(tx.q)
  await sumProducts(tx, [...new Set(written.map(({ product_id }) => product_id))])
  return written
}

/**
 * Writes what products have on the shelf: the sum of their facings, or a count that its hub has not confirmed yet with what
 * has moved since it was typed.
 */
export async function sumProducts(tx: Tx, productIds: readonly number[]): Promise<void> {
  const source = recordset(
    tx.kind,
    { id: 'int' },
    productIds.map((id) => ({ id })),
  )
  await sql`
    update products
    set quantity = coalesce(
      (select c.quantity + coalesce((
          select sum(l.delta) from stock_ledger as l
          where l.id > c.ledger_from and l.product_id = c.product_id and l.hub_id = c.hub_id
            and l.at > c.counted_at and l.kind in ('dropped', 'restocked')), 0)
        from stock_counts as c where c.product_id = products.id and c.settled_at is null),
      (select coalesce(sum(f.quantity), 0) from facings as f where f.product_id = products.id))
    from ${source}
    where products.id = r.id`.execute(tx.q)
}

/** A product that has a facing at the hub is the hub's; of others it is looked up. */
async function requireProducts(
  tx: Tx,
  hubId: number,
  productIds: ReadonlySet<number>,
  facings: readonly { product_id: number }[],
): Promise<void> {
  const faced = new Set(facings.map(({ product_id }) => product_id))
  for (const id of productIds) {
    if (faced.has(id)) continue
    const product = await tx.q
      .selectFrom('products')
      .select('id')
      .where('id', '=', id)
      .where('hub_id', '=', hubId)
      .executeTakeFirst()
    if (!product) throw new ApplyError(`hub ${hubId} has no product ${id}`)
  }
}

/** A hub's facings in the order of their places, locked. */
export const lockFacings = (tx: Tx, hubId: number) =>
  tx
    .forUpdate(
      tx.q
        .selectFrom('facings')
        .selectAll()
        .where('hub_id', '=', hubId)
        .orderBy('cabinet')
        .orderBy('shelf')
        .orderBy('row'),
    )
    .execute()
