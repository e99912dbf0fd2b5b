import type { Location } from '../../protocol/model/location.ts'
import type { Store } from './store.ts'

export interface FacingRow extends Location {
  product_id: number
  is_primary: 0 | 1
  quantity: number
}

/** `snapshot`: taken over from the cloud. `moved`: the planogram gave the place to another product. */
export type StockKind = 'snapshot' | 'dropped' | 'counted' | 'restocked' | 'moved'

export interface StockChange {
  kind: StockKind
  location: Location
  delta: number
  /** Operation, count or restock. */
  causeId: string
  /** Cloud time, milliseconds. */
  at: number
}

interface LedgerSum extends Location {
  number: number
  product_id: number
  delta: number
  at: number
}

/** Stock of each facing, and the append-only ledger whose sums it is (I5). */
export interface Stock {
  facings(): FacingRow[]
  ofProduct(productId: number): FacingRow[]
  facing(location: Location): FacingRow | undefined
  putFacing(location: Location, productId: number, primary: boolean): void
  removeFacing(location: Location): void
  /** Books the change and returns the facing after it; nothing where there is no such facing. */
  change(change: StockChange): FacingRow | undefined
  /** What left and came since `at`, counts aside, in units: negative where more dropped. */
  movedSince(productId: number, at: number): number
  hasCause(causeId: string): boolean
  /** Forgets stock, facings and ledger: the store is not the one that they belong to. */
  deleteAll(): void
  /** Sums up all but the newest `kept` rows of the ledger, so that they still add up. */
  prune(kept: number): void
}

export function createStock({ db }: Store): Stock {
  const at = 'cabinet = @cabinet AND shelf = @shelf AND row = @row'
  const statements = {
    facings: db.prepare<[], FacingRow>('SELECT * FROM facings ORDER BY cabinet, shelf, row'),
    ofProduct: db.prepare<[number], FacingRow>(
      'SELECT * FROM facings WHERE product_id = ? ORDER BY is_primary DESC, cabinet, shelf, row',
    ),
    facing: db.prepare<Location, FacingRow>(`SELECT * FROM facings WHERE ${at}`),
    put: db.prepare<Location & { product_id: number; is_primary: 0 | 1 }>(
      `INSERT INTO facings (cabinet, shelf, row, product_id, is_primary, quantity)
       VALUES (@cabinet, @shelf, @row, @product_id, @is_primary, 0)
       ON CONFLICT (cabinet, shelf, row) DO UPDATE SET product_id = excluded.product_id, is_primary = excluded.is_primary`,
    ),
    remove: db.prepare<Location>(`DELETE FROM facings WHERE ${at}`),
    add: db.prepare<Location & { delta: number }, FacingRow>(
      `UPDATE facings SET quantity = quantity + @delta WHERE ${at} RETURNING *`,
    ),
    book: db.prepare<FacingRow & { kind: StockKind; delta: number; cause_id: string; at: number }>(
      `INSERT INTO stock_ledger (kind, product_id, cabinet, shelf, row, delta, cause_id, at)
       VALUES (@kind, @product_id, @cabinet, @shelf, @row, @delta, @cause_id, @at)`,
    ),
    movedSince: db
      .prepare<[number, number], number>(
        `SELECT coalesce(sum(delta), 0) FROM stock_ledger
         WHERE product_id = ? AND at > ? AND kind IN ('dropped', 'restocked')`,
      )
      .pluck(),
    hasCause: db.prepare<[string], number>('SELECT 1 FROM stock_ledger WHERE cause_id = ? LIMIT 1').pluck(),
    deleteLedger: db.prepare<[]>('DELETE FROM stock_ledger'),
    deleteFacings: db.prepare<[]>('DELETE FROM facings'),
    oldestSummed: db
      .prepare<[number], number>('SELECT number FROM stock_ledger ORDER BY number DESC LIMIT 1 OFFSET ?')
      .pluck(),
    sums: db.prepare<[number], LedgerSum>(
      `SELECT max(number) AS number, product_id, cabinet, shelf, row, sum(delta) AS delta, max(at) AS at
       FROM stock_ledger WHERE number <= ? GROUP BY product_id, cabinet, shelf, row`,
    ),
    deleteThrough: db.prepare<[number]>('DELETE FROM stock_ledger WHERE number <= ?'),
    insertSum: db.prepare<LedgerSum>(
      `INSERT INTO stock_ledger (number, kind, product_id, cabinet, shelf, row, delta, cause_id, at)
       VALUES (@number, 'snapshot', @product_id, @cabinet, @shelf, @row, @delta, 'sum', @at)`,
    ),
  }
  const place = ({ cabinet, shelf, row }: Location): Location => ({ cabinet, shelf, row })
  return {
    facings: () => statements.facings.all(),
    ofProduct: (productId) => statements.ofProduct.all(productId),
    facing: (location) => statements.facing.get(place(location)),
    putFacing: (location, product_id, primary) =>
      void statements.put.run({ ...place(location), product_id, is_primary: primary ? 1 : 0 }),
    removeFacing: (location) => void statements.remove.run(place(location)),
    change({ kind, location, delta, causeId, at }) {
      const facing = statements.add.get({ ...place(location), delta })
      if (facing) statements.book.run({ ...facing, kind, delta, cause_id: causeId, at })
      return facing
    },
    movedSince: (productId, at) => statements.movedSince.get(productId, at) ?? 0,
    hasCause: (causeId) => statements.hasCause.get(causeId) !== undefined,
    deleteAll() {
      statements.deleteLedger.run()
      statements.deleteFacings.run()
    },
    prune(kept) {
      const through = statements.oldestSummed.get(kept)
      if (through === undefined) return
      const sums = statements.sums.all(through)
      statements.deleteThrough.run(through)
      for (const sum of sums) statements.insertSum.run(sum)
    },
  }
}
