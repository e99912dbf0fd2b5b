import { defineTable, flag, id, instant, int, oneOf, orderedText, text } from '../table.ts'

/**
 * Catalogue and stock. Rows that hubs report have no foreign keys: they are stored even if the cloud's own rows have
 * changed. For the same reason a quantity may have any value, while the cloud's own reservations may not.
 */
export const catalogueTables = {
  categories: defineTable({ id, name: text, parent_id: int.references('categories').nullable }),
  products: defineTable({
    id,
    hub_id: int.references('hubs').fixed,
    name: text,
    /** `searchText(name)`: searched, and the sort order of product lists. */
    search_name: orderedText,
    upc: text,
    description: text.nullable,
    category_id: int.references('categories'),
    subcategory_id: int.references('categories').nullable,
    original_price: int.check('> 0'),
    /** The product's own markdown, 0–99. `discounted_price` is the remaining price, rounded half up. */
    markdown_percent: int.check('between 0 and 99'),
    purchase_price: int.check('>= 0'),
    image_url: text,
    is_bestseller: flag,
    is_active: flag,
    cabinet: int.check('between 1 and 4'),
    shelf: int,
    row: int,
    /**
     * Units on the shelf in the hub's latest ledger (I5). While a count is on its way to the hub: the count plus later
     * movements. Written only by `shelf-stock.ts`.
     */
    quantity: int,
    /**
     * Units for orders in PENDING_PAYMENT to PREPARING that are not dispensed yet. At most `quantity` when reserved.
     */
    reserved: int.check('>= 0'),
  })
    .unique('hub_id', 'upc')
    .check('length(upc) = 12')
    .index('products_by_category', ['hub_id', 'category_id'])
    .index('products_by_location', ['hub_id', 'cabinet', 'shelf', 'row'])
    .index('products_by_search_name', ['hub_id', 'search_name', 'id'], 'is_active = 1'),
  facings: defineTable({
    hub_id: int.references('hubs'),
    cabinet: int,
    shelf: int,
    row: int,
    product_id: int.references('products'),
    is_primary: flag,
    quantity: int,
    /** When the hub last applied a count of it. */
    counted_at: instant.nullable,
  })
    .primaryKey('hub_id', 'cabinet', 'shelf', 'row')
    .index('facings_by_product', ['product_id'])
    .uniqueIndex('facings_one_primary', ['product_id'], 'is_primary = 1'),
  /** Append-only mirror of the hub's stock ledger. */
  stock_ledger: defineTable({
    id,
    hub_id: int.fixed,
    product_id: int.fixed,
    cabinet: int.fixed,
    shelf: int.fixed,
    row: int.fixed,
    kind: oneOf(['dropped', 'counted', 'restocked', 'snapshot']).fixed,
    delta: int.fixed,
    /** Operation, count or restock id. Unique per hub, so that a hub with a new store causes no duplicates. */
    cause_id: text.fixed,
    order_id: int.nullable.fixed,
    item_id: int.nullable.fixed,
    /**
     * For a dispense of an order's line: its units that reached the customer's bin, as first reported. Further units
     * were not ordered.
     */
    delivered: int.nullable.fixed,
    at: instant.fixed,
  }).unique('hub_id', 'kind', 'cause_id', 'cabinet', 'shelf', 'row'),
  /** Counts that people entered. The newest count of a product or row is pending until the hub confirms it. */
  stock_counts: defineTable({
    count_id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    product_id: int.references('products').fixed,
    /** The counted row. Null: the whole product, in all rows. */
    cabinet: int.nullable.fixed,
    shelf: int.nullable.fixed,
    row: int.nullable.fixed,
    quantity: int.check('>= 0').fixed,
    counted_at: instant.fixed,
    /** The newest row of `stock_ledger` at entry. Later reports follow it. */
    ledger_from: int.fixed,
    settled_at: instant.nullable,
  })
    .index('stock_counts_pending_by_hub', ['hub_id'], 'settled_at is null')
    .uniqueIndex('stock_counts_pending', ['product_id'], 'settled_at is null and cabinet is null')
    .uniqueIndex(
      'stock_counts_pending_by_row',
      ['hub_id', 'cabinet', 'shelf', 'row'],
      'settled_at is null and cabinet is not null',
    ),
  /** Operations with an outcome that the hub could not determine (I1). */
  unknown_operations: defineTable({
    hub_id: int.fixed,
    operation_id: text.fixed,
    device: text.fixed,
    action: text.fixed,
    reason: text.fixed,
    /** The row of a dispense. */
    cabinet: int.nullable.fixed,
    shelf: int.nullable.fixed,
    row: int.nullable.fixed,
    order_id: int.nullable.fixed,
    item_id: int.nullable.fixed,
    product_id: int.nullable.fixed,
    /** When the operation was intended, and when the hub stopped trying to determine its outcome. */
    started_at: instant.fixed,
    at: instant.fixed,
    settled_at: instant.nullable,
    /** `hub`: the hub knows how it was settled, but the cloud lost the report. */
    settled_by: oneOf(['sensor', 'count', 'person', 'hub']).nullable,
    /** Whether it happened. Null while unknown, and if settled by `hub`. */
    happened: flag.nullable,
    /**
     * The hub has a new store that does not contain the operation. Its absence from a report therefore settles nothing.
     */
    is_forgotten: flag.default(0),
  })
    .primaryKey('hub_id', 'operation_id')
    .index('unknown_operations_by_start', ['started_at', 'operation_id'])
    .index('unknown_operations_open', ['product_id'], 'settled_at is null'),
}
