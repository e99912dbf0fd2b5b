import type { CloudMigration } from './migration.ts'

/** Sales, summed up. Of orders that are there already they are made when the service starts (`analytics/rebuild.ts`). */
export const analytics: CloudMigration = {
  name: '0008-analytics',
  statements: ({ int, text, end }) => [
    `create table sales (
      order_id ${int} primary key references orders (id),
      user_id ${int} not null,
      day ${text} not null,
      lines ${text} not null
    ) ${end}`,
    `create table sales_totals (
      hub_id ${int} not null references hubs (id),
      period ${text} not null,
      product_id ${int} not null,
      orders ${int} not null,
      units ${int} not null,
      revenue ${int} not null,
      cost ${int} not null,
      customers ${int} not null,
      primary key (hub_id, period, product_id)
    ) ${end}`,
    `create table sales_customers (
      hub_id ${int} not null references hubs (id),
      period ${text} not null,
      user_id ${int} not null,
      orders ${int} not null,
      primary key (hub_id, period, user_id)
    ) ${end}`,
    `create table sales_calendars (
      hub_id ${int} primary key references hubs (id),
      timezone ${text},
      run ${int} not null
    ) ${end}`,
  ],
}
