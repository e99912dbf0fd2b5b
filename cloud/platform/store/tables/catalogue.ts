import { defineTable, flag, id, instant, int, oneOf, orderedText, text } from '../table.ts'

/**
 * Catalogue and stock. What hubs report has no foreign keys: a hub's truth is stored even where the cloud's own rows have
 * moved on. For the same reason a quantity may be anything, while what the cloud itself reserves may not.
 */
export const catalogueTables = {
  categories: defineTable({ id, name: text, parent_id: int.references('categories').nullable }),
  products: defineTable({
    id,
    hub_id: int.references('hubs').fixed,
    name: text,
    /** `searchText(name)`: what a search looks in, and the order that products are listed in. */
    search_name: orderedText,
    upc: text,
    description: text.nullable,
    category_id: int.references('categories'),
    subcategory_id: int.references('categories').nullable,
    original_price: int.check('> 0'),
    /** The product's own markdown, 0–99: `discounted_price` is what is left, rounded half up. */
    markdown_percent: int.check('between 0 and 99'),
    purchase_price: int.check('>= 0'),
    image_url: text,
    is_bestseller: flag,
    is_active: flag,
    cabinet: int.check('between 1 and 4'),
    shelf: int,
    row: int,
    /**
     * On the shelf, as the hub's ledger last said (I5); where a count is on its way to the hub, the count and what has moved
     * since. Written by `shelf-stock.ts` alone.
     */
    quantity: int,
    /** For orders in PENDING_PAYMENT to PREPARING and not yet dropped. Never above `quantity` when it is reserved. */
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
    /** When the hub last took a count of it in. */
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
    /** Operation, count or restock id: unique per hub, so that a hub with a new store doubles nothing. */
    cause_id: text.fixed,
    order_id: int.nullable.fixed,
    item_id: int.nullable.fixed,
    /** Of a drop for an order's line: its units that reached the customer's bin as the hub told then; others were more than was asked for. */
    delivered: int.nullable.fixed,
    at: instant.fixed,
  }).unique('hub_id', 'kind', 'cause_id', 'cabinet', 'shelf', 'row'),
  /** Counts that people typed. The newest of a product, or of a row, is pending until the hub reports that it has it. */
  stock_counts: defineTable({
    count_id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    product_id: int.references('products').fixed,
    /** The row that was counted; without one the product, wherever it stands. */
    cabinet: int.nullable.fixed,
    shelf: int.nullable.fixed,
    row: int.nullable.fixed,
    quantity: int.check('>= 0').fixed,
    counted_at: instant.fixed,
    /** The newest row of `stock_ledger` when it was typed: what was reported after it is looked for behind that. */
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
  /** Operations whose outcome the hub could not learn (I1). */
  unknown_operations: defineTable({
    hub_id: int.fixed,
    operation_id: text.fixed,
    device: text.fixed,
    action: text.fixed,
    reason: text.fixed,
    /** Of a dispense: the row. */
    cabinet: int.nullable.fixed,
    shelf: int.nullable.fixed,
    row: int.nullable.fixed,
    order_id: int.nullable.fixed,
    item_id: int.nullable.fixed,
    product_id: int.nullable.fixed,
    /** When it was intended, and when its outcome was given up. */
    started_at: instant.fixed,
    at: instant.fixed,
    settled_at: instant.nullable,
    /** `hub`: the hub knows by what, and the cloud has lost the report. */
    settled_by: oneOf(['sensor', 'count', 'person', 'hub']).nullable,
    /** Null as long as it is unknown, and where it was settled `hub`. */
    happened: flag.nullable,
    /** The hub has a new store since, which does not know of it: that it does not name it settles nothing. */
    is_forgotten: flag.default(0),
  })
    .primaryKey('hub_id', 'operation_id')
    .index('unknown_operations_by_start', ['started_at', 'operation_id'])
    .index('unknown_operations_open', ['product_id'], 'settled_at is null'),
}
