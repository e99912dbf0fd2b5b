import { randomHex } from '../../../protocol/model/ids.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { SnapshotEntry, StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { consumePromises } from './consume-promises.ts'
import { insertLedger, type LedgerRow } from './stock-ledger.ts'
import { settleCounts } from './stock-counts.ts'
import { setFacings, sumProducts, type FacingQuantity } from './stock-facings.ts'

/**
 * Mirrors a run of a hub's stock entries, oldest first, with a handful of statements however many there are. The shelf
 * ends as the hub's last word on it says. An entry whose cause the ledger holds already adds nothing to it. Throws
 * `ApplyError` where an entry is of no product of the hub; which one is then found by applying them one by one.
 */
export async function applyStockEntries(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  hubId: number,
  entries: readonly StockEntry[],
): Promise<void> {
  if (entries.length === 0) return
  const rows = entries.map(toLedgerRow)
  const isNew = await insertLedger(tx, hubId, rows)
  const shelves = new Map<string, FacingQuantity & { delta: number }>()
  entries.forEach((entry, index) => {
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
  await consumePromises(tx, hubId, drops as Extract<StockEntry, { kind: 'stock.dropped' }>[])
}

/** Takes up what the hub holds true. A facing that it does not name stays as it was. */
export async function applySnapshot(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
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
