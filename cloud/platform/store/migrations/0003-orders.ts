import type { CloudMigration } from './migration.ts'

/** People and their orders. */
export const orders: CloudMigration = {
  name: '0003-orders',
  statements: ({ id, int, text, end }) => [
    `create table users (
      id ${id},
      identity ${text} unique,
      is_anonymous ${int} not null check (is_anonymous in (0, 1)),
      email ${text},
      phone_number ${text},
      first_name ${text},
      last_name ${text},
      profile_image_key ${text},
      selected_hub_id ${int} references hubs (id),
      default_hub_id ${int} references hubs (id),
      created_at ${int} not null,
      updated_at ${int} not null
    ) ${end}`,
    `create index users_by_email on users (email)`,
    `create index users_by_phone_number on users (phone_number)`,
    `create table orders (
      id ${id},
      user_id ${int} not null references users (id),
      hub_id ${int} not null references hubs (id),
      processing_status ${int} not null
        check (processing_status in (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)),
      payment_status ${text} not null,
      currency ${text} not null,
      total_price_original ${int} check (total_price_original >= 0),
      total_price_discounted ${int} check (total_price_discounted >= 0),
      tax_total ${int} check (tax_total >= 0),
      total ${int} check (total >= 0),
      deals ${text},
      version ${int} not null,
      reserved_bin ${int},
      open_when_ready ${int} not null check (open_when_ready in (0, 1)),
      bins ${text} not null,
      queued_order ${text},
      failure_reason ${text},
      created_at ${int} not null,
      updated_at ${int} not null,
      queued_at ${int},
      preparing_at ${int},
      ready_at ${int},
      finished_at ${int}
    ) ${end}`,
    `create index orders_by_hub on orders (hub_id, id)`,
    `create index orders_by_user on orders (user_id, id)`,
    // One active order per user and hub, and one claim per bin (contract §5).
    `create unique index orders_one_active on orders (user_id, hub_id) where processing_status <= 50`,
    `create unique index orders_one_claim on orders (hub_id, reserved_bin)
      where reserved_bin is not null and processing_status <= 50`,
    `create index orders_under_way on orders (processing_status, updated_at) where processing_status <= 50`,
    `create index orders_expired on orders (finished_at) where processing_status = 100`,
    `create table order_items (
      id ${id},
      order_id ${int} not null references orders (id) on delete cascade,
      product_id ${int} not null references products (id),
      qty ${int} not null check (qty > 0),
      upc ${text},
      name ${text},
      image_url ${text},
      unit_price_original ${int} check (unit_price_original >= 0),
      unit_price ${int} check (unit_price >= 0),
      purchase_price ${int},
      net ${int} check (net >= 0),
      tax ${int} check (tax >= 0),
      reserved ${int} not null check (reserved >= 0 and reserved <= qty),
      qty_dropped ${int} not null check (qty_dropped >= 0),
      qty_doubtful ${int} not null check (qty_doubtful >= 0),
      refunded_quantity ${int} not null check (refunded_quantity >= 0 and refunded_quantity <= qty),
      bins ${text} not null,
      unique (order_id, product_id)
    ) ${end}`,
    `create index order_items_by_product on order_items (product_id)`,
  ],
}
