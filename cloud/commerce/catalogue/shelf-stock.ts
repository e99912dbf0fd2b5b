import { sql } from 'kysely'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { type Location, locationKey } from '../../../protocol/model/location.ts'
import type { StockCount } from '../../../protocol/mqtt/cloud-entries.ts'
import type { StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { ApplyError } from '../../gateway/domain.ts'
import { enqueue, type OutboxPlace } from '../../gateway/outbox.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { isInOneRow, movedSince, shownUnits } from './units.ts'
import type { EventType } from '../../../protocol/model/event-types.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { appendEvent } from '../../events/append-event.ts'
import { readOwnerProduct } from './owner-product.ts'

interface TypedCount {
  hubId: number
  productId: number
  /** The counted row; null: the product at all its rows. */
  location: Location | null
  quantity: number
}

/**
 * Records a count of a person. It is shown at once and sent to the hub, which sets its stock to the count minus its
 * later drops. It replaces an unconfirmed earlier count of the product or the row, and also of a product that only this
 * row contains. Returns its position in the hub's outbox.
 */
export async function countStock(
  tx: Tx,
  context: CloudContext,
  { hubId, productId, location, quantity }: TypedCount,
): Promise<{ count_id: string; sent: OutboxPlace | null }> {
  const { runtime } = context
  const now = runtime.clock.now()
  const counted = { product_id: productId, quantity, counted_at: now }
  const count: StockCount = { count_id: uuidv7(runtime), location, ...counted }
  let former = tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
  former =
    location === null
      ? former.where('product_id', '=', productId)
      : former.where((eb) =>
          eb.or([
            eb.and({ ...location }),
            eb('product_id', '=', productId)
              .and('cabinet', 'is', null)
              .and(isInOneRow(sql.val(productId))),
          ]),
        )
  await former.execute()
  const { newest } = await tx.q
    .selectFrom('stock_ledger')
    .select((eb) => eb.fn.max('id').as('newest'))
    .executeTakeFirstOrThrow()
  await tx.q
    .insertInto('stock_counts')
    .values({
      ...counted,
      count_id: count.count_id,
      hub_id: hubId,
      cabinet: location?.cabinet ?? null,
      shelf: location?.shelf ?? null,
      row: location?.row ?? null,
      ledger_from: newest ?? 0,
      settled_at: null,
    })
    .execute()
  await sumProducts(tx, context, [productId])
  publishProduct(tx, context, { hubId, productId }, 'inventory.counted')
  return { count_id: count.count_id, sent: await enqueue(tx, hubId, { kind: 'stock.count', count }) }
}

/** The hub has applied these counts: from now on its ledger is the stock. Returns the products of the counts. */
export async function settleCounts(
  tx: Tx,
  hubId: number,
  entries: readonly StockEntry[],
  now: number,
): Promise<number[]> {
  const ids = new Set(entries.flatMap((entry) => (entry.kind === 'stock.counted' ? [entry.count_id] : [])))
  if (ids.size === 0) return []
  for (const entry of entries)
    if (entry.kind === 'stock.counted')
      await tx.q
        .updateTable('facings')
        .set({ counted_at: Math.round(entry.at) })
        .where((eb) => eb.and({ hub_id: hubId, ...entry.location }))
        .where((eb) => eb.or([eb('counted_at', 'is', null), eb('counted_at', '<', Math.round(entry.at))]))
        .execute()
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

/**
 * Removes counts of rows that have another product by now, or none: no hub applies them, and they do not concern the
 * new product.
 */
export async function settleMovedCounts(tx: Tx, hubId: number, now: number): Promise<void> {
  await tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .where('cabinet', 'is not', null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('facings')
            .select('facings.row')
            .whereRef('facings.hub_id', '=', 'stock_counts.hub_id')
            .whereRef('facings.cabinet', '=', 'stock_counts.cabinet')
            .whereRef('facings.shelf', '=', 'stock_counts.shelf')
            .whereRef('facings.row', '=', 'stock_counts.row')
            .whereRef('facings.product_id', '=', 'stock_counts.product_id'),
        ),
      ),
    )
    .execute()
}

/** The unconfirmed counts of a hub, oldest first; at most one for each product and each row. */
export async function pendingCounts(tx: Tx, hubId: number): Promise<StockCount[]> {
  const rows = await tx.q
    .selectFrom('stock_counts')
    .select(['count_id', 'product_id', 'cabinet', 'shelf', 'row', 'quantity', 'counted_at'])
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .orderBy('counted_at')
    .orderBy('count_id')
    .execute()
  return rows.map(({ cabinet, shelf, row, ...count }) => ({
    ...count,
    location: cabinet === null || shelf === null || row === null ? null : { cabinet, shelf, row },
  }))
}

/** The stock of one facing. */
export type FacingQuantity = {
  product_id: number
  cabinet: number
  shelf: number
  row: number
  quantity: number
}

/**
 * Writes the stock of facings and the products' sums. A facing that is not in the planogram is added to its product. A
 * facing of a row that has another product by now is not written. Returns the written facings with their former stock.
 */
export async function setFacings<F extends FacingQuantity>(
  tx: Tx,
  context: CloudContext,
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
  await sumProducts(tx, context, [...new Set(written.map(({ product_id }) => product_id))])
  return written
}

/** Writes the stock of products: the sum of their facings, or an unconfirmed count of a product with several rows. */
export function sumProducts(tx: Tx, context: CloudContext, productIds: readonly number[]): Promise<void> {
  return publishStock(tx, context, productIds, () => writeSums(tx, productIds))
}

async function writeSums(tx: Tx, productIds: readonly number[]): Promise<void> {
  const source = recordset(
    tx.kind,
    { id: 'int' },
    productIds.map((id) => ({ id })),
  )
  await sql`
    update products
    set quantity = coalesce(
      (select c.quantity + ${movedSince} from stock_counts as c
        where c.product_id = products.id and c.cabinet is null and c.settled_at is null
          and not ${isInOneRow(sql`products.id`)}),
      (select coalesce(sum(${shownUnits}), 0) from facings where facings.product_id = products.id))
    from ${source}
    where products.id = r.id`.execute(tx.q)
}

/** A product with a facing at the hub belongs to the hub; other products are looked up. */
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

/** A hub's facings in the order of their locations, locked. */
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

type StockEvent = Extract<EventType, `inventory.${string}`>

/** Appends an event of a product. */
export const publishProduct = (
  tx: Tx,
  context: CloudContext,
  { hubId, productId }: { hubId: number; productId: number },
  type: StockEvent,
): string =>
  appendEvent(tx, context, {
    type,
    hubId,
    data: async () => ({ ...(await readOwnerProduct(tx.q, productId)), hub_id: hubId }),
  })

/**
 * The event of a change of a product's quantity. It occurs when the quantity falls below the limit, not while it stays
 * below.
 */
function stockEvent(before: number, after: number, lowStock: number): StockEvent | undefined {
  if (after <= 0) return before > 0 ? 'inventory.out_of_stock' : undefined
  return after <= lowStock && before > lowStock ? 'inventory.low_stock' : undefined
}

/**
 * Executes `change` of products' quantities and appends the resulting events. It locks the products first, in the order
 * of checkouts. Otherwise a statement that waited for a lock would sum the stock from before the wait.
 */
async function publishStock(
  tx: Tx,
  context: CloudContext,
  productIds: readonly number[],
  change: () => Promise<void>,
): Promise<void> {
  if (productIds.length === 0) return
  const read = () =>
    tx.q
      .selectFrom('products')
      .select(['id', 'hub_id', 'name', 'quantity', 'is_active'])
      .where('id', 'in', productIds)
      .orderBy('id')
  const locked = await tx.forUpdate(read()).execute()
  const before = new Map(locked.map(({ id, quantity }) => [id, quantity]))
  await change()
  const { lowStock } = context.settings
  for (const { id, hub_id: hubId, name, quantity, is_active } of await read().execute()) {
    const was = before.get(id) ?? 0
    const type = stockEvent(was, quantity, lowStock)
    if (type !== undefined && is_active === 1) publishProduct(tx, context, { hubId, productId: id }, type)
    const incident = { hubId, kind: 'stock_low', subject: `product ${id}` } as const
    if (was > lowStock && quantity <= lowStock && is_active === 1)
      await raiseAlarm(tx, context, {
        ...incident,
        detail: `${quantity} left`,
        details: { product_id: id, name, quantity },
      })
    // An inactive product needs no restock.
    if ((was <= lowStock && quantity > lowStock) || is_active === 0) await clearAlarm(tx, context, incident)
  }
}
