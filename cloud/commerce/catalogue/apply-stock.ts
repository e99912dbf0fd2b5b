import { sql } from 'kysely'
import { randomHex } from '../../../protocol/model/ids.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { OperationEntry, SnapshotEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { consumeReservations, lockItem, unreserve } from './reservations.ts'
import { type FacingQuantity, setFacings, settleCounts, sumProducts } from './shelf-stock.ts'

/**
 * Mirrors a run of a hub's stock entries, oldest first, with a handful of statements however many there are. The shelf
 * ends as the hub's last word on it says. An entry whose cause the ledger holds already adds nothing to it. Throws
 * `ApplyError` where an entry is of no product of the hub; which one is then found by applying them one by one.
 */
export async function applyStockEntries(
  tx: Tx,
  { runtime }: CloudContext,
  hubId: number,
  entries: readonly StockEntry[],
): Promise<void> {
  if (entries.length === 0) return
  const rows = entries.map(toLedgerRow)
  const isNew = await insertLedger(tx, hubId, rows)
  const shelves = new Map<string, FacingQuantity & { delta: number }>()
  entries.forEach((entry, index) => {
    // Of a product that its hub's planogram has no place for any more: it was written off before it fell.
    if (entry.kind === 'stock.dropped' && entry.delta === 0) return
    const key = `${locationKey(entry.location)}:${entry.product_id}`
    const delta = (shelves.get(key)?.delta ?? 0) + (isNew(rows[index]!) ? entry.delta : 0)
    shelves.set(key, {
      ...entry.location,
      product_id: entry.product_id,
      quantity: entry.quantity,
      delta,
    })
  })
  const counted = await settleCounts(tx, hubId, entries, runtime.clock.now())
  const before = await setFacings(tx, hubId, [...shelves.values()])
  await sumProducts(tx, counted)
  await insertCorrections(tx, hubId, runtime, Math.round(entries.at(-1)!.at), before)
  const drops = entries.filter((entry, index) => entry.kind === 'stock.dropped' && isNew(rows[index]!))
  await consumeReservations(tx, hubId, drops as Extract<StockEntry, { kind: 'stock.dropped' }>[])
}

/** Takes up what the hub holds true. A facing that it does not name stays as it was. */
export async function applySnapshot(
  tx: Tx,
  { runtime }: CloudContext,
  hubId: number,
  entry: SnapshotEntry,
): Promise<void> {
  const shelves = entry.stock.map(({ product_id, location, quantity }) => ({
    ...location,
    product_id,
    quantity,
    delta: 0,
  }))
  const changed = await setFacings(tx, hubId, shelves)
  await insertCorrections(tx, hubId, runtime, Math.round(entry.at), changed)
}

/**
 * What a shelf holds now and its ledger does not explain (a hub whose store was lost, a cause reported twice) becomes an
 * entry of its own, so that the ledger still sums to the shelf (I5).
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
      at,
    })),
  )
}

function toLedgerRow(entry: StockEntry): LedgerRow {
  const common = {
    product_id: entry.product_id,
    ...entry.location,
    delta: entry.delta,
    at: Math.round(entry.at),
    order_id: null,
    item_id: null,
  }
  switch (entry.kind) {
    case 'stock.dropped':
      return {
        ...common,
        kind: 'dropped',
        cause_id: entry.operation_id,
        order_id: entry.order_id,
        item_id: entry.line_id,
      }
    case 'stock.counted':
      return { ...common, kind: 'counted', cause_id: entry.count_id }
    case 'stock.restocked':
      return { ...common, kind: 'restocked', cause_id: entry.restock_id }
  }
}

/**
 * An operation of which the hub could not learn what became (I1), or what it learned in the end. An unknown unit passes
 * from the order's reservation to the doubtful ones: it may be on the shelf, but nobody is sold it.
 */
export async function applyOperationEntry(
  tx: Tx,
  { runtime }: CloudContext,
  hubId: number,
  entry: OperationEntry,
): Promise<void> {
  switch (entry.kind) {
    case 'operation.unknown': {
      const inserted = await tx.q
        .insertInto('unknown_operations')
        .values({
          hub_id: hubId,
          operation_id: entry.operation_id,
          device: entry.device,
          action: entry.action,
          reason: entry.reason,
          order_id: entry.order_id,
          item_id: entry.line_id,
          product_id: entry.product_id,
          at: Math.round(entry.at),
          settled_at: null,
          settled_by: null,
          happened: null,
        })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      if (inserted.numInsertedOrUpdatedRows === 1n && entry.line_id !== null)
        await doubtUnit(tx, hubId, entry.line_id)
      return
    }
    case 'operation.settled':
      await tx.q
        .updateTable('unknown_operations')
        .set({
          settled_at: runtime.clock.now(),
          settled_by: entry.by,
          happened: entry.happened ? 1 : 0,
        })
        .where('hub_id', '=', hubId)
        .where('operation_id', '=', entry.operation_id)
        .where('settled_at', 'is', null)
        .execute()
  }
}

async function doubtUnit(tx: Tx, hubId: number, itemId: number): Promise<void> {
  const item = await lockItem(tx, hubId, itemId)
  const freed = Math.min(item.reserved, 1)
  await tx.q
    .updateTable('order_items')
    .set({ reserved: item.reserved - freed, qty_doubtful: item.qty_doubtful + 1 })
    .where('id', '=', itemId)
    .execute()
  await unreserve(tx, [{ productId: item.product_id, quantity: freed }])
}

/** A row of `stock_ledger` before it has an id; a type rather than an interface, as rows of a `recordset` are. */
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
  at: number
}

type Cause = Pick<LedgerRow, 'cause_id' | 'cabinet' | 'shelf' | 'row'> & { kind: string }

const causeKey = ({ kind, cause_id, cabinet, shelf, row }: Cause): string =>
  `${kind} ${cause_id} ${cabinet}-${shelf}-${row}`

/** Appends what the ledger does not hold yet. Returns which rows those were. */
async function insertLedger(
  tx: Tx,
  hubId: number,
  rows: readonly LedgerRow[],
): Promise<(row: Cause) => boolean> {
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
      (hub_id, product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, at)
    select cast(${hubId} as bigint), product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, at
    from ${source} where true
    on conflict do nothing`.execute(tx.q)
  if (numAffectedRows === BigInt(rows.length)) return () => true
  // Rarely: something was reported before. Which rows are new is not asked for above, as that would halve the pace.
  const inserted = await tx.q
    .selectFrom('stock_ledger')
    .select(['kind', 'cause_id', 'cabinet', 'shelf', 'row'])
    .where('hub_id', '=', hubId)
    .where('id', '>', newest ?? 0)
    .execute()
  const keys = new Set(inserted.map(causeKey))
  return (row) => keys.has(causeKey(row))
}
