import { sql } from 'kysely'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'

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

type Cause = Pick<LedgerRow, 'cause_id' | 'cabinet' | 'shelf' | 'row'> & { kind: string }

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
