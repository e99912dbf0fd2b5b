import { sql } from 'kysely'
import type { Tx } from '../store/database.ts'
import { recordset } from '../store/recordset.ts'

/** A row of `stock_ledger` before it has an id; a type rather than an interface, as rows of a `recordset` are. */
export type LedgerRow = {
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

type Cause = Pick<LedgerRow, 'kind' | 'cause_id' | 'cabinet' | 'shelf' | 'row'>

const causeKey = ({ kind, cause_id, cabinet, shelf, row }: Cause): string =>
  `${kind} ${cause_id} ${cabinet}-${shelf}-${row}`

/** Appends what the ledger does not hold yet, and tells which rows those were. */
export async function insertLedger(
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
  const inserted = await sql<Cause>`
    insert into stock_ledger
      (hub_id, product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, at)
    select cast(${hubId} as bigint), product_id, cabinet, shelf, "row", kind, delta, cause_id, order_id, item_id, at
    from ${source} where true
    on conflict do nothing
    returning kind, cause_id, cabinet, shelf, "row"`.execute(tx.q)
  if (inserted.rows.length === rows.length) return () => true
  const keys = new Set(inserted.rows.map(causeKey))
  return (row) => keys.has(causeKey(row))
}
