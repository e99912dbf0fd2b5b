import type { Location } from '../../protocol/model/location.ts'
import type { NamedProduct } from '../../protocol/mqtt/cloud-entries.ts'
import { all, one, run, value, writer } from './statements.ts'
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

/** Units that fell from a facing. */
export interface DropRow extends Location {
  product_id: number
  delta: number
  cause_id: string
  at: number
}

interface LedgerSum extends Location {
  number: number
  product_id: number
  delta: number
  at: number
}

export type Stock = ReturnType<typeof createStock>

/** Stock of each facing, and the append-only ledger whose sums it is (I5). */
export function createStock(store: Store) {
  const { db } = store
  const at = 'cabinet = @cabinet AND shelf = @shelf AND row = @row'
  const facing = one(db.prepare<[Location], FacingRow>(`SELECT * FROM facings WHERE ${at}`))
  const load = all(db.prepare<[], FacingRow>('SELECT * FROM facings ORDER BY cabinet, shelf, row'))
  const facings = store.keep((): readonly FacingRow[] => load())
  const writeFacings = writer(facings)
  const put = writeFacings(
    db.prepare<[Location & { product_id: number; is_primary: 0 | 1 }]>(
      `INSERT INTO facings (cabinet, shelf, row, product_id, is_primary, quantity)
     VALUES (@cabinet, @shelf, @row, @product_id, @is_primary, 0)
     ON CONFLICT (cabinet, shelf, row) DO UPDATE SET product_id = excluded.product_id, is_primary = excluded.is_primary`,
    ),
  )
  const remove = writeFacings(db.prepare<[Location]>(`DELETE FROM facings WHERE ${at}`))
  const add = one(
    db.prepare<[Location & { delta: number }], FacingRow>(
      `UPDATE facings SET quantity = quantity + @delta WHERE ${at} RETURNING *`,
    ),
  )
  const book = run(
    db.prepare<[FacingRow & { kind: StockKind; delta: number; cause_id: string; at: number }]>(
      `INSERT INTO stock_ledger (kind, product_id, cabinet, shelf, row, delta, cause_id, at)
     VALUES (@kind, @product_id, @cabinet, @shelf, @row, @delta, @cause_id, @at)`,
    ),
  )
  const movedSince = value(
    db.prepare<[productId: number, at: number], number>(
      `SELECT coalesce(sum(delta), 0) FROM stock_ledger
     WHERE product_id = ? AND at > ? AND kind IN ('dropped', 'restocked')`,
    ),
  )
  const movedAt = value(
    db.prepare<[Location & { productId: number; at: number }], number>(
      `SELECT coalesce(sum(delta), 0) FROM stock_ledger
     WHERE product_id = @productId AND ${at} AND at > @at AND kind IN ('dropped', 'restocked')`,
    ),
  )
  const isCounted = value(
    db.prepare<[countId: string], number>(
      `SELECT 1 FROM stock_ledger WHERE kind = 'counted' AND cause_id = ? LIMIT 1`,
    ),
  )
  const isBooked = value(
    db.prepare<[causeId: string], number>(
      `SELECT 1 FROM stock_ledger WHERE kind IN ('counted', 'restocked') AND cause_id = ? LIMIT 1`,
    ),
  )
  const countedAfter = value(
    db.prepare<[Location & { at: number }], number>(
      `SELECT 1 FROM stock_ledger WHERE ${at} AND at > @at AND kind = 'counted' LIMIT 1`,
    ),
  )
  const droppedSince = all(
    db.prepare<[since: number], DropRow>(
      `SELECT cabinet, shelf, row, product_id, delta, cause_id, at FROM stock_ledger
     WHERE kind = 'dropped' AND at >= ? ORDER BY number`,
    ),
  )
  const deleteLedger = run(db.prepare<[]>('DELETE FROM stock_ledger'))
  const deleteFacings = writeFacings(db.prepare<[]>('DELETE FROM facings'))
  const oldestSummed = value(
    db.prepare<[kept: number], number>(
      'SELECT number FROM stock_ledger ORDER BY number DESC LIMIT 1 OFFSET ?',
    ),
  )
  const sums = all(
    db.prepare<[through: number], LedgerSum>(
      `SELECT max(number) AS number, product_id, cabinet, shelf, row, sum(delta) AS delta, max(at) AS at
     FROM stock_ledger WHERE number <= ? GROUP BY product_id, cabinet, shelf, row`,
    ),
  )
  const deleteThrough = run(db.prepare<[through: number]>('DELETE FROM stock_ledger WHERE number <= ?'))
  const insertSum = run(
    db.prepare<[LedgerSum]>(
      `INSERT INTO stock_ledger (number, kind, product_id, cabinet, shelf, row, delta, cause_id, at)
     VALUES (@number, 'snapshot', @product_id, @cabinet, @shelf, @row, @delta, 'sum', @at)`,
    ),
  )
  const deleteProducts = run(db.prepare<[]>('DELETE FROM products'))
  const putProduct = run(
    db.prepare<[NamedProduct]>(
      'INSERT OR REPLACE INTO products (product_id, name, upc) VALUES (@product_id, @name, @upc)',
    ),
  )
  const place = ({ cabinet, shelf, row }: Location): Location => ({ cabinet, shelf, row })
  return {
    facings: facings.get,
    /** Primary ones first. */
    ofProduct: (productId: number): FacingRow[] =>
      facings
        .get()
        .filter((row) => row.product_id === productId)
        .toSorted((a, b) => b.is_primary - a.is_primary),
    facing: (location: Location) => facing(place(location)),
    putFacing: (location: Location, product_id: number, primary: boolean) =>
      put({ ...place(location), product_id, is_primary: primary ? 1 : 0 }),
    /** What products are called; all of them at once. */
    setProducts(products: readonly NamedProduct[]): void {
      deleteProducts()
      for (const { product_id, name, upc } of products) putProduct({ product_id, name, upc })
    },
    products: all(db.prepare<[], NamedProduct>('SELECT * FROM products')),
    removeFacing: (location: Location) => remove(place(location)),
    /** Books the change and returns the facing after it; nothing where there is no such facing. */
    change({ kind, location, delta, causeId, at }: StockChange): FacingRow | undefined {
      facings.forget()
      const after = add({ ...place(location), delta })
      if (after) book({ ...after, kind, delta, cause_id: causeId, at })
      return after
    },
    /** What left and came since `at`, counts aside, in units: negative where more dropped. Of one place, or of all. */
    movedSince: (productId: number, at: number, location: Location | null): number =>
      (location === null ? movedSince(productId, at) : movedAt({ ...place(location), productId, at })) ?? 0,
    /** Whether the count is in the books. */
    isCounted: (countId: string): boolean => isCounted(countId) !== undefined,
    /** Whether what a person entered under this id is in the books. */
    isBooked: (causeId: string): boolean => isBooked(causeId) !== undefined,
    /** Whether the place was counted after `at`. */
    isCountedAfter: (location: Location, at: number): boolean =>
      countedAfter({ ...place(location), at }) !== undefined,
    /** What fell since then, the oldest first. */
    droppedSince,
    /** Forgets stock, facings and ledger: the store is not the one that they belong to. */
    deleteAll(): void {
      deleteLedger()
      deleteFacings()
    },
    /** Sums up all but the newest `kept` rows of the ledger, so that they still add up. */
    prune(kept: number): void {
      const through = oldestSummed(kept)
      if (through === undefined) return
      const summed = sums(through)
      deleteThrough(through)
      for (const sum of summed) insertSum(sum)
    },
  }
}
