import type { Location } from '../../protocol/model/location.ts'
import type { NamedProduct } from '../../protocol/mqtt/cloud-entries.ts'
import { DiskTable, Rows } from './rows.ts'
import type { Store } from './store.ts'
import type { RowOf } from './table.ts'
import * as tables from './tables.ts'

type StockRow = RowOf<typeof tables.stockLedger>

export interface StockChange {
  kind: tables.StockKind
  location: Location
  delta: number
  /** Id of the operation, count or restock. */
  causeId: string
  /** Cloud time, milliseconds. */
  at: number
}

/** Units that fell from a facing. */
export type DropRow = Location & { product_id: number; delta: number; cause_id: string; at: number }

const AT = 'cabinet = ? AND shelf = ? AND row = ?'
const COUNTED_SINCE = `product_id = ? AND at > ? AND kind = 'counted' AND ${AT}`
const placeOf = ({ cabinet, shelf, row }: Location): [number, number, number] => [cabinet, shelf, row]

/** The stock of each facing, and the append-only ledger of its changes. The stock is the sum of the ledger (I5). */
export class Stock {
  readonly facings: Rows<typeof tables.facings>
  readonly #ledger: DiskTable<typeof tables.stockLedger>
  readonly #products: Rows<typeof tables.products>
  readonly #ofProduct: (product: number) => readonly tables.FacingRow[]

  constructor(store: Store) {
    this.facings = new Rows(store, tables.facings)
    this.#ofProduct = this.facings.index(({ product_id }) => product_id)
    this.#ledger = new DiskTable(store, tables.stockLedger)
    this.#products = new Rows(store, tables.products)
  }

  /** Primary facings first. */
  ofProduct(productId: number): tables.FacingRow[] {
    return this.#ofProduct(productId).toSorted((a, b) => Number(b.is_primary) - Number(a.is_primary))
  }

  putFacing(location: Location, product_id: number, is_primary: boolean): void {
    const { cabinet, shelf, row } = location
    const known = this.facings.find(location)
    if (known?.product_id === product_id && known.is_primary === is_primary) return
    this.facings.put({ cabinet, shelf, row, product_id, is_primary, quantity: known?.quantity ?? 0 })
  }

  /** Replaces the names of all products. */
  setProducts(products: readonly NamedProduct[]): void {
    const named = new Set(products.map(({ product_id }) => product_id))
    for (const { product_id } of this.#products.all())
      if (!named.has(product_id)) this.#products.delete(product_id)
    for (const { product_id, name, upc } of products) {
      const known = this.#products.find(product_id)
      if (known?.name !== name || known.upc !== upc) this.#products.put({ product_id, name, upc })
    }
  }

  product(id: number): NamedProduct | undefined {
    return this.#products.find(id)
  }

  /** Books the change and returns the facing after it; undefined if there is no such facing. */
  change({ kind, location, delta, causeId: cause_id, at }: StockChange): tables.FacingRow | undefined {
    const facing = this.facings.find(location)
    if (facing === undefined) return undefined
    const { product_id, cabinet, shelf, row } = facing
    this.#ledger.add({ kind, product_id, cabinet, shelf, row, delta, cause_id, at })
    return this.facings.change(location, { quantity: facing.quantity + delta })
  }

  /**
   * Units dropped and restocked since `at`, in one location or all; negative if more dropped. Counts are not
   * included.
   */
  movedSince(productId: number, at: number, location: Location | null): number {
    const isThere = location === null ? '' : `AND ${AT}`
    const where = `WHERE product_id = ? AND at > ? AND kind IN ('dropped', 'restocked') ${isThere}`
    return this.#ledger.value('sum(delta)', where, productId, at, ...(location ? placeOf(location) : [])) ?? 0
  }

  /** Whether the count is booked. */
  isCounted(countId: string): boolean {
    return this.#has(`kind = 'counted' AND cause_id = ?`, countId)
  }

  /** Whether a person's entry with this id is booked. */
  isBooked(causeId: string): boolean {
    return this.#has(`kind IN ('counted', 'restocked') AND cause_id = ?`, causeId)
  }

  /** Whether the location was counted, or changed by the planogram, after `at`. */
  isReplacedAfter(location: Location, at: number): boolean {
    return this.#has(`${AT} AND at > ? AND kind IN ('counted', 'moved')`, ...placeOf(location), at)
  }

  /** Whether the facing was counted after `at`. */
  isCountedAfter(facing: Location & { product_id: number }, at: number): boolean {
    return this.#has(COUNTED_SINCE, facing.product_id, at, ...placeOf(facing))
  }

  /** The sum of the changes by counts of the facing after `at`. */
  countedSince(facing: Location & { product_id: number }, at: number): number {
    const where = `WHERE ${COUNTED_SINCE}`
    return this.#ledger.value('sum(delta)', where, facing.product_id, at, ...placeOf(facing)) ?? 0
  }

  /** Drops since `since`, oldest first. */
  droppedSince(since: number): DropRow[] {
    return this.#ledger.select(`WHERE kind = 'dropped' AND at >= ? ORDER BY number`, since)
  }

  /** Deletes stock, facings and ledger: they belong to another store. */
  clear(): void {
    this.#ledger.remove()
    this.facings.clear()
  }

  /** Replaces all but the newest `kept` ledger rows by their sums, so that the total stays the same. */
  prune(kept: number): void {
    const through = this.#ledger.value('number', 'ORDER BY number DESC LIMIT 1 OFFSET ?', kept)
    if (through === null) return
    const sums = new Map<string, StockRow>()
    for (const row of this.#ledger.select('WHERE number <= ? ORDER BY number', through)) {
      const key = [row.product_id, ...placeOf(row)].join(' ')
      const { delta = 0, at = row.at } = sums.get(key) ?? {}
      sums.set(key, { ...row, delta: delta + row.delta, at: Math.max(at, row.at) })
    }
    this.#ledger.remove('WHERE number <= ?', through)
    for (const sum of sums.values()) this.#ledger.add({ ...sum, kind: 'snapshot', cause_id: 'sum' })
  }

  #has(condition: string, ...parameters: unknown[]): boolean {
    return this.#ledger.value('1', `WHERE ${condition} LIMIT 1`, ...parameters) !== null
  }
}
