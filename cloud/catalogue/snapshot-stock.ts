import type { CloudEntry, Facing } from '../../protocol/mqtt/cloud-entries.ts'
import type { Tx } from '../store/database.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/** The controllers of a hub remember far fewer operations than this. */
const KNOWN_OPERATIONS = 5000

/** The catalogue's part of the snapshot that begins a hub's outbox. */
export async function snapshotStock(
  tx: Tx,
  hubId: number,
): Promise<Pick<Snapshot, 'facings' | 'stock' | 'known_operations'>> {
  const rows = await tx.q
    .selectFrom('facings')
    .selectAll()
    .where('hub_id', '=', hubId)
    .orderBy('cabinet')
    .orderBy('shelf')
    .orderBy('row')
    .execute()
  const dropped = await tx.q
    .selectFrom('stock_ledger')
    .select('cause_id')
    .where('hub_id', '=', hubId)
    .where('kind', '=', 'dropped')
    .orderBy('id', 'desc')
    .limit(KNOWN_OPERATIONS)
    .execute()
  return {
    facings: rows.map(toFacing),
    stock: rows.map((row) => ({
      product_id: row.product_id,
      location: { cabinet: row.cabinet, shelf: row.shelf, row: row.row },
      quantity: row.quantity,
    })),
    known_operations: dropped.map(({ cause_id }) => cause_id).reverse(),
  }
}

function toFacing(row: {
  product_id: number
  cabinet: number
  shelf: number
  row: number
  is_primary: 0 | 1
}): Facing {
  return {
    product_id: row.product_id,
    location: { cabinet: row.cabinet, shelf: row.shelf, row: row.row },
    primary: row.is_primary === 1,
  }
}
