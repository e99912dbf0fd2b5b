import type { CloudMigration } from './migration.ts'

/** What customers say of themselves, their devices, carts that were merged, and how fast hubs dispense. */
export const people: CloudMigration = {
  name: '0012-people',
  statements: ({ id, int, real, text, end }) => [
    `alter table users add column date_of_birth ${text}`,
    `alter table users add column locale ${text}`,
    `alter table users add column device_uuid ${text}`,
    `alter table users add column notify_push ${int} not null default 1 check (notify_push in (0, 1))`,
    `alter table users add column notify_email ${int} not null default 1 check (notify_email in (0, 1))`,
    `alter table users add column notify_sms ${int} not null default 1 check (notify_sms in (0, 1))`,
    `alter table users add column deleted_at ${int}`,
    `create table push_configs (
      id ${id},
      user_id ${int} not null references users (id),
      device_id ${text} not null,
      platform ${text} not null check (platform in ('ios', 'android', 'web')),
      push_token ${text} not null,
      token_digest ${text} not null unique,
      app_version ${text},
      locale ${text},
      enabled ${int} not null check (enabled in (0, 1)),
      created_at ${int} not null,
      updated_at ${int} not null,
      unique (user_id, device_id)
    ) ${end}`,
    `alter table orders add column hub_began_at ${int}`,
    `alter table orders add column merged_into ${int}`,
    // A queue is short however many orders its hub has had.
    `create index orders_in_queue on orders (hub_id, queued_at) where processing_status <= 50`,
    `drop index orders_by_user`,
    `create index orders_by_user on orders (user_id, created_at, id)`,
    `create table hub_paces (
      hub_id ${int} primary key references hubs (id),
      unit_ms ${real} not null check (unit_ms > 0),
      samples ${int} not null,
      updated_at ${int} not null
    ) ${end}`,
  ],
}
