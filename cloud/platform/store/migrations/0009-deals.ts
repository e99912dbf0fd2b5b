import type { CloudMigration } from './migration.ts'

/**
 * Deals and their redemptions. A redemption is a matter of the books: it refers to its order and user by their numbers, and
 * stays when they or the deal go.
 */
export const deals: CloudMigration = {
  name: '0009-deals',
  statements: ({ id, int, text, end }) => [
    `create table deals (
      id ${id},
      hub_id ${int} not null references hubs (id),
      name ${text} not null,
      description ${text},
      display_text ${text},
      image_key ${text},
      priority ${int} not null,
      is_active ${int} not null check (is_active in (0, 1)),
      start_day ${text},
      end_day ${text},
      created_at ${int} not null,
      updated_at ${int} not null,
      deleted_at ${int},
      check (start_day is null or end_day is null or start_day <= end_day)
    ) ${end}`,
    `create index deals_by_hub on deals (hub_id, id) where deleted_at is null`,
    `create table deal_triggers (
      id ${id},
      deal_id ${int} not null references deals (id),
      type ${text} not null,
      quantity ${int} check (quantity > 0),
      category_id ${int} references categories (id),
      product_id ${int} references products (id)
    ) ${end}`,
    `create index deal_triggers_by_deal on deal_triggers (deal_id)`,
    `create table deal_rewards (
      id ${id},
      deal_id ${int} not null references deals (id),
      type ${text} not null,
      quantity ${int} check (quantity > 0),
      product_id ${int} references products (id),
      discount_pct_or_price ${int} check (discount_pct_or_price >= 0)
    ) ${end}`,
    `create index deal_rewards_by_deal on deal_rewards (deal_id)`,
    `create table deal_constraints (
      id ${id},
      deal_id ${int} not null references deals (id),
      type ${text} not null,
      value ${text} not null,
      unique (deal_id, type)
    ) ${end}`,
    `create table deal_redemptions (
      id ${id},
      deal_id ${int} not null references deals (id),
      order_id ${int},
      user_id ${int},
      device_uuid ${text},
      discount_amount ${int} not null check (discount_amount > 0),
      status ${text} not null check (status in ('pending', 'completed', 'released')),
      redeemed_at ${int} not null,
      expires_at ${int},
      check (order_id is not null or expires_at is not null),
      check (order_id is not null or status <> 'completed')
    ) ${end}`,
    `create index deal_redemptions_by_deal on deal_redemptions (deal_id, id)`,
    `create index deal_redemptions_binding on deal_redemptions (deal_id, user_id) where status <> 'released'`,
    `create index deal_redemptions_by_device on deal_redemptions (deal_id, device_uuid)
      where status <> 'released' and device_uuid is not null`,
    `create unique index deal_redemptions_by_order on deal_redemptions (order_id, deal_id)
      where order_id is not null and status <> 'released'`,
    `create index deal_redemptions_announced on deal_redemptions (expires_at)
      where order_id is null and status = 'pending'`,
  ],
}
