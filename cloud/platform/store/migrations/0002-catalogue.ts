import type { CloudMigration } from './migration.ts'

/**
 * Products, facings and the mirror of the hubs' stock. What hubs report has no foreign keys: a hub's truth is stored even
 * where the cloud's own rows have moved on. For the same reason a quantity may be anything, while what the cloud itself
 * promises (`reserved`) may not.
 */
export const catalogue: CloudMigration = {
  name: '0002-catalogue',
  statements: ({ id, int, text, orderedText, end }) => [
    `create table categories (id ${id}, name ${text} not null, parent_id ${int} references categories (id)) ${end}`,
    `create table products (
      id ${id},
      hub_id ${int} not null references hubs (id),
      name ${text} not null,
      search_name ${orderedText} not null,
      upc ${text} not null check (length(upc) = 12),
      description ${text},
      category_id ${int} not null references categories (id),
      subcategory_id ${int} references categories (id),
      original_price ${int} not null check (original_price > 0),
      markdown_percent ${int} not null check (markdown_percent between 0 and 99),
      purchase_price ${int} not null check (purchase_price >= 0),
      image_url ${text} not null,
      is_bestseller ${int} not null check (is_bestseller in (0, 1)),
      is_active ${int} not null check (is_active in (0, 1)),
      cabinet ${int} not null check (cabinet between 1 and 4),
      shelf ${int} not null,
      row ${int} not null,
      quantity ${int} not null,
      reserved ${int} not null check (reserved >= 0),
      unique (hub_id, upc)
    ) ${end}`,
    `create index products_by_search_name on products (hub_id, search_name, id) where is_active = 1`,
    `create index products_by_category on products (hub_id, category_id)`,
    `create index products_by_location on products (hub_id, cabinet, shelf, row)`,
    `create table facings (
      hub_id ${int} not null references hubs (id),
      cabinet ${int} not null,
      shelf ${int} not null,
      row ${int} not null,
      product_id ${int} not null references products (id),
      is_primary ${int} not null check (is_primary in (0, 1)),
      quantity ${int} not null,
      primary key (hub_id, cabinet, shelf, row)
    ) ${end}`,
    `create index facings_by_product on facings (product_id)`,
    `create unique index facings_one_primary on facings (product_id) where is_primary = 1`,
    `create table stock_ledger (
      id ${id},
      hub_id ${int} not null,
      product_id ${int} not null,
      cabinet ${int} not null,
      shelf ${int} not null,
      row ${int} not null,
      kind ${text} not null check (kind in ('dropped', 'counted', 'restocked', 'snapshot')),
      delta ${int} not null,
      cause_id ${text} not null,
      order_id ${int},
      item_id ${int},
      at ${int} not null,
      unique (hub_id, kind, cause_id, cabinet, shelf, row)
    ) ${end}`,
    `create table unknown_operations (
      hub_id ${int} not null,
      operation_id ${text} not null,
      device ${text} not null,
      action ${text} not null,
      reason ${text} not null,
      order_id ${int},
      item_id ${int},
      product_id ${int},
      at ${int} not null,
      settled_at ${int},
      settled_by ${text},
      happened ${int} check (happened in (0, 1)),
      primary key (hub_id, operation_id)
    ) ${end}`,
    `create index unknown_operations_open on unknown_operations (product_id) where settled_at is null`,
  ],
}
