import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Catalogue and stock. */
export interface CatalogueTables {
  categories: { id: Generated<number>; name: string; parent_id: number | null }
  products: {
    id: Generated<number>
    hub_id: Fixed<number>
    name: string
    /** `searchText(name)`: what a search looks in, and the order that products are listed in. */
    search_name: string
    upc: string
    description: string | null
    category_id: number
    subcategory_id: number | null
    original_price: number
    /** The product's own markdown, 0–99: `discounted_price` is what is left, rounded half up. */
    markdown_percent: number
    purchase_price: number
    image_url: string
    is_bestseller: Flag
    is_active: Flag
    cabinet: number
    shelf: number
    row: number
    /**
     * On the shelf, as the hub's ledger last said (I5); where a count is on its way to the hub, the count and what has moved
     * since. Written by `stock-facings.ts` alone.
     */
    quantity: number
    /** Promised to orders in PENDING_PAYMENT to PREPARING and not yet dropped. Never above `quantity` when promised. */
    reserved: number
  }
  facings: {
    hub_id: number
    cabinet: number
    shelf: number
    row: number
    product_id: number
    is_primary: Flag
    quantity: number
  }
  /** Append-only mirror of the hub's stock ledger. */
  stock_ledger: {
    id: Generated<number>
    hub_id: Fixed<number>
    product_id: Fixed<number>
    cabinet: Fixed<number>
    shelf: Fixed<number>
    row: Fixed<number>
    /** dropped | counted | restocked | snapshot */
    kind: Fixed<string>
    delta: Fixed<number>
    /** Operation, count or restock id: unique per hub, so that a hub with a new store doubles nothing. */
    cause_id: Fixed<string>
    order_id: Fixed<number | null>
    item_id: Fixed<number | null>
    at: Fixed<Instant>
  }
  /** Counts that people typed (design §2). The newest of a product is pending until the hub reports that it has it. */
  stock_counts: {
    count_id: Fixed<string>
    hub_id: Fixed<number>
    product_id: Fixed<number>
    quantity: Fixed<number>
    counted_at: Fixed<Instant>
    /** The newest row of `stock_ledger` when it was typed: what was reported after it is looked for behind that. */
    ledger_from: Fixed<number>
    settled_at: Instant | null
  }
  /** Operations whose outcome the hub could not learn (I1). */
  unknown_operations: {
    hub_id: Fixed<number>
    operation_id: Fixed<string>
    device: Fixed<string>
    action: Fixed<string>
    reason: Fixed<string>
    order_id: Fixed<number | null>
    item_id: Fixed<number | null>
    product_id: Fixed<number | null>
    at: Fixed<Instant>
    settled_at: Instant | null
    settled_by: string | null
    happened: Flag | null
  }
}
