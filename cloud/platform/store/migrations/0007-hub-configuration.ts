import type { CloudMigration } from './migration.ts'

/** How hubs are built, what of them is closed, and counts of stock on their way to them. */
export const hubConfiguration: CloudMigration = {
  name: '0007-hub-configuration',
  statements: ({ int, text, end }) => [
    `create table hub_shelves (
      hub_id ${int} not null references hubs (id),
      cabinet ${int} not null check (cabinet between 1 and 4),
      shelf ${int} not null check (shelf >= 1),
      total_rows ${int} not null check (total_rows >= 1),
      primary key (hub_id, cabinet, shelf)
    ) ${end}`,
    `create table hub_fridges (
      hub_id ${int} not null references hubs (id),
      fridge ${int} not null check (fridge >= 1),
      left_cabinet ${int} not null,
      middle_cabinet ${int} not null,
      right_cabinet ${int} not null,
      primary key (hub_id, fridge)
    ) ${end}`,
    `create table closed_cabinets (
      hub_id ${int} not null references hubs (id),
      cabinet ${int} not null,
      primary key (hub_id, cabinet)
    ) ${end}`,
    `create table stock_counts (
      count_id ${text} primary key,
      hub_id ${int} not null references hubs (id),
      product_id ${int} not null references products (id),
      quantity ${int} not null check (quantity >= 0),
      counted_at ${int} not null,
      ledger_from ${int} not null,
      settled_at ${int}
    ) ${end}`,
    `create unique index stock_counts_pending on stock_counts (product_id) where settled_at is null`,
    `create index stock_counts_pending_by_hub on stock_counts (hub_id) where settled_at is null`,
  ],
}
