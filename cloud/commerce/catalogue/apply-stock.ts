import { sql } from 'kysely'
import { randomHex } from '../../../protocol/model/ids.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { SnapshotEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { ApplyOptions } from '../../gateway/domain.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { followUnknown, forgetUnknown, findOrders, renewVersions, unaccounted } from './apply-operations.ts'
import { consumeReservations, type Delivered } from './reservations.ts'
import {
  lockFacings,
  setFacings,
  settleCounts,
  sumProducts,
  publishProduct,
  type FacingQuantity,
} from './shelf-stock.ts'

/**
 * Mirrors a run of a hub's stock entries, oldest first, with a few statements for any number of entries. The shelf gets
 * the quantity of the hub's last entry. A late entry (`isLate`) or one with a known cause changes nothing. Throws
 * `ApplyError` if an entry is of no product of the hub; the caller then finds it by applying the entries one by one.
 */
export async function applyStockEntries(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entries: readonly StockEntry[],
  { isLate = false }: ApplyOptions = {},
): Promise<void> {
  if (entries.length === 0) return
  const { runtime } = context
  const orders = await findOrders(tx, context, hubId, entries)
  const rows = entries.map((entry) => toLedgerRow(entry, orders))
  const isNew = await insertLedger(tx, hubId, rows)
  const shelves = new Map<string, FacingQuantity & { delta: number }>()
  entries.forEach((entry, index) => {
    if (!isNew[index]) return
    // The hub's planogram has no row for the product any more: the unit was written off before it fell.
    if (entry.kind === 'stock.dropped' && entry.delta === 0) return
    const { product_id, location, quantity } = entry
    const key = `${locationKey(location)}:${product_id}`
    const delta = (shelves.get(key)?.delta ?? 0) + entry.delta
    shelves.set(key, { ...location, product_id, quantity, delta })
  })
  if (isLate) await keepQuantities(tx, hubId, shelves)
  await publishCounts(
    tx,
    context,
    hubId,
    entries.filter((_, index) => isNew[index]),
  )
  const counted = await settleCounts(tx, hubId, entries, runtime.clock.now())
  const before = await setFacings(tx, context, hubId, [...shelves.values()])
  await sumProducts(tx, context, counted)
  await insertCorrections(tx, hubId, runtime, Math.round(entries.at(-1)!.at), before)
  const drops = entries.flatMap((entry, index) => {
    const row = rows[index]!
    if (entry.kind !== 'stock.dropped' || !isNew[index] || row.order_id === null || row.item_id === null)
      return []
    return [{ orderId: row.order_id, itemId: row.item_id, delivered: entry.delivered }]
  })
  const open = await unaccounted(
    tx,
    drops.map(({ orderId }) => orderId),
  )
  const served = await consumeReservations(
    tx,
    drops.filter(({ orderId }) => open.has(orderId)),
  )
  const accounted = isLate ? [] : drops.filter(({ orderId }) => !open.has(orderId))
  served.push(...(await consumeReservations(tx, await beyondAccount(tx, hubId, accounted))))
  await renewVersions(tx, hubId, [...new Set(served)])
}

/**
 * For orders with a complete report of each line: the drops that exceed the report. A drop that the database lost and
 * that a hub reports again was in the report; a drop that was detected later was not.
 */
async function beyondAccount(tx: Tx, hubId: number, drops: readonly Delivered[]): Promise<Delivered[]> {
  if (drops.length === 0) return []
  const items = drops.map(({ itemId }) => itemId)
  const rows = await tx.q
    .selectFrom('order_items')
    .select(['id', 'qty_dropped'])
    .where('id', 'in', items)
    .execute()
  const fallen = await tx.q
    .selectFrom('stock_ledger')
    .select((eb) => ['item_id', eb.fn.sum<number | string>('delivered').as('units')])
    .where('hub_id', '=', hubId)
    .where('item_id', 'in', items)
    .groupBy('item_id')
    .execute()
  const orders = new Map(drops.map(({ itemId, orderId }) => [itemId, orderId]))
  const units = new Map(fallen.map((row) => [row.item_id, Number(row.units)]))
  return rows.map(({ id, qty_dropped }) => ({
    orderId: orders.get(id)!,
    itemId: id,
    delivered: Math.max(0, units.get(id)! - qty_dropped),
  }))
}

/** For late entries: keeps the present quantities of shelves instead of the entries' old ones. */
async function keepQuantities(
  tx: Tx,
  hubId: number,
  shelves: Map<string, FacingQuantity & { delta: number }>,
): Promise<void> {
  const facings = await lockFacings(tx, hubId)
  const held = new Map(
    facings.map((facing) => [`${locationKey(facing)}:${facing.product_id}`, facing.quantity]),
  )
  for (const [key, shelf] of shelves) shelves.set(key, { ...shelf, quantity: held.get(key) ?? 0 })
}

/** Records the audit of a count at the hub: once, however many facings were counted. */
async function publishCounts(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entries: readonly StockEntry[],
): Promise<void> {
  const counts = new Map(
    entries.flatMap((entry) =>
      entry.kind === 'stock.counted' ? [[`${entry.count_id} ${entry.product_id}`, entry] as const] : [],
    ),
  )
  if (counts.size === 0) return
  const typed = await tx.q
    .selectFrom('stock_counts')
    .select('count_id')
    .where(
      'count_id',
      'in',
      [...counts.values()].map(({ count_id }) => count_id),
    )
    .execute()
  const known = new Set(typed.map(({ count_id }) => count_id))
  for (const { count_id, product_id: productId } of counts.values())
    if (!known.has(count_id)) publishProduct(tx, context, { hubId, productId }, 'inventory.counted')
}

/**
 * Applies a hub's snapshot. Facings that it does not contain stay unchanged. Facings of unknown products are ignored:
 * such a product was added after the backup from which the cloud was restored. An operation that the snapshot lists is
 * unknown. Another operation of its store was settled, and the cloud has lost the report.
 */
export async function applySnapshot(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: SnapshotEntry,
): Promise<void> {
  const { runtime, log } = context
  const products = await tx.q.selectFrom('products').select('id').where('hub_id', '=', hubId).execute()
  const known = new Set(products.map(({ id }) => id))
  const stock = entry.stock.filter(({ product_id }) => known.has(product_id))
  if (stock.length < entry.stock.length) log.warn({ hubId }, 'a hub has products that are not known here')
  if (entry.unknown_operations) await followUnknown(tx, hubId, entry.unknown_operations, entry.at)
  else await forgetUnknown(tx, hubId)
  const shelves = stock.map(({ product_id, location, quantity }) => ({
    ...location,
    product_id,
    quantity,
    delta: 0,
  }))
  const changed = await setFacings(tx, context, hubId, shelves)
  await insertCorrections(tx, hubId, runtime, Math.round(entry.at), changed)
}

/**
 * Adds a correction to the ledger if a shelf's quantity is not the sum of its entries (the hub lost its store, or
 * reported a cause twice). So the ledger still sums to the shelf (I5).
 */
async function insertCorrections(
  tx: Tx,
  hubId: number,
  runtime: CloudContext['runtime'],
  at: number,
  shelves: readonly (FacingQuantity & { delta: number; before: number })[],
): Promise<void> {
  const corrections = shelves
    .map((shelf) => ({ ...shelf, missing: shelf.quantity - shelf.before - shelf.delta }))
    .filter(({ missing }) => missing !== 0)
  if (corrections.length === 0) return
  const cause_id = randomHex(runtime.random, 16)
  await insertLedger(
    tx,
    hubId,
    corrections.map(({ product_id, cabinet, shelf, row, missing }) => ({
      product_id,
      cabinet,
      shelf,
      row,
      kind: 'snapshot' as const,
      delta: missing,
      cause_id,
      order_id: null,
      item_id: null,
      delivered: null,
      at,
    })),
  )
}

function toLedgerRow(entry: StockEntry, orders: ReadonlyMap<string, number>): LedgerRow {
  const common = {
    product_id: entry.product_id,
    ...entry.location,
    delta: entry.delta,
    at: Math.round(entry.at),
    order_id: null,
    item_id: null,
    delivered: null,
  }
  switch (entry.kind) {
    case 'stock.dropped': {
      const order_id = orders.get(entry.order_id ?? '') ?? null
      const item_id = order_id === null ? null : entry.line_id
      return {
        ...common,
        kind: 'dropped',
        cause_id: entry.operation_id,
        order_id,
        item_id,
        delivered: entry.delivered,
      }
    }
    case 'stock.counted':
      return { ...common, kind: 'counted', cause_id: entry.count_id }
    case 'stock.restocked':
      return { ...common, kind: 'restocked', cause_id: entry.restock_id }
  }
}

/** A row of `stock_ledger` before it has an id. A type and not an interface, as `recordset` requires. */
type LedgerRow = {
  product_id: number
  cabinet: number
  shelf: number
  row: number
  kind: 'dropped' | 'counted' | 'restocked' | 'snapshot'
  delta: number
  cause_id: string
  order_id: number | null
  item_id: number | null
  delivered: number | null
  at: number
}

type Cause = Pick<LedgerRow, 'cause_id' | 'cabinet' | 'shelf' | 'row'> & { kind: string }

const causeKey = ({ kind, cause_id, cabinet, shelf, row }: Cause): string =>
  `${kind} ${cause_id} ${cabinet}-${shelf}-${row}`

/**
 * Appends the rows that the ledger does not contain yet. Returns for each row whether it was new; of two rows with one
 * cause, the first is.
 */
async function insertLedger(tx: Tx, hubId: number, rows: readonly LedgerRow[]): Promise<boolean[]> {
  const source = recordset(
    tx.kind,
    {
      product_id: 'int',
      cabinet: 'int',
      shelf: 'int',
      row: 'int',
      kind: 'text',
      delta: 'int',
      cause_id: 'text',
      order_id: 'int',
      item_id: 'int',
      delivered: 'int',
      at: 'int',
    },
    rows,
  )
  const { newest } = await tx.q
    .selectFrom('stock_ledger')
    .select((eb) => eb.fn.max('id').as('newest'))
    .executeTakeFirstOrThrow()
  const { numAffectedRows } = await sql`
    insert into stock_ledger
      (hub_id, product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, delivered, at)
    select cast(${hubId} as bigint), product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, delivered, at
    from ${source} where true
    on conflict do nothing`.execute(tx.q)
  if (numAffectedRows === BigInt(rows.length)) return rows.map(() => true)
  // Rare: a row was reported before. The insert above does not return the new rows, because that would halve the
  // throughput.
  const inserted = await tx.q
    .selectFrom('stock_ledger')
    .select(['kind', 'cause_id', 'cabinet', 'shelf', 'row'])
    .where('hub_id', '=', hubId)
    .where('id', '>', newest ?? 0)
    .execute()
  const keys = new Set(inserted.map(causeKey))
  return rows.map((row) => keys.delete(causeKey(row)))
}
