import type { CloudMigration } from './migration.ts'

/** Payments and refunds, and the sandbox processor's own books. */
export const payments: CloudMigration = {
  name: '0004-payments',
  statements: ({ id, int, text, end }) => [
    `create table payments (
      id ${id},
      order_id ${int} not null references orders (id),
      user_id ${int} not null references users (id),
      processor ${text} not null check (processor in ('sandbox', 'stripe', 'external', 'wallet', 'none')),
      processor_ref ${text},
      method ${text} not null,
      type ${text} not null default 'card' check (type in ('card', 'platform_a', 'platform_b')),
      customer_ref ${text},
      saves_method ${int} not null default 0 check (saves_method in (0, 1)),
      amount ${int} not null check (amount >= 0),
      status ${text} not null
        check (status in ('pending', 'requires_action', 'authorized', 'completed', 'failed', 'canceled')),
      decline_code ${text},
      client_secret ${text},
      confirmed_by_key ${text},
      is_late ${int} not null check (is_late in (0, 1)),
      created_at ${int} not null,
      updated_at ${int} not null
    ) ${end}`,
    `create index payments_by_order on payments (order_id)`,
    // An order is paid once (I3): whatever else arrives is late and goes back.
    `create unique index payments_one_live on payments (order_id)
      where is_late = 0 and status in ('pending', 'requires_action', 'authorized', 'completed')`,
    `create unique index payments_by_processor_ref on payments (processor_ref, processor)
      where processor_ref is not null`,
    `create index payments_under_way on payments (status, updated_at)
      where status in ('pending', 'requires_action', 'authorized')`,
    `create table refunds (
      id ${id},
      order_id ${int} not null references orders (id),
      payment_id ${int} not null references payments (id),
      item_id ${int} references order_items (id),
      quantity ${int} not null check (quantity >= 0),
      amount ${int} not null check (amount >= 0),
      tax ${int} not null check (tax >= 0 and tax <= amount),
      reason ${text} not null
        check (reason in ('customer', 'short', 'timed_out', 'failed', 'cancelled', 'late_payment')),
      status ${text} not null check (status in ('pending', 'succeeded', 'failed')),
      processor_ref ${text},
      failure_reason ${text},
      actor ${text} not null default 'service',
      request_key ${text},
      attempts ${int} not null default 0,
      refusals ${int} not null default 0,
      due_at ${int},
      created_at ${int} not null,
      updated_at ${int} not null
    ) ${end}`,
    `create index refunds_by_order on refunds (order_id)`,
    `create index refunds_by_payment on refunds (payment_id)`,
    `create index refunds_due on refunds (due_at) where due_at is not null`,
    `create unique index refunds_by_processor_ref on refunds (processor_ref) where processor_ref is not null`,
    // What the service refunds by itself it refunds once.
    `create unique index refunds_once_per_item on refunds (payment_id, item_id, reason)
      where item_id is not null and reason <> 'customer' and status <> 'failed'`,
    `create unique index refunds_once_per_payment on refunds (payment_id, reason)
      where item_id is null and reason <> 'customer' and status <> 'failed'`,
    `create table processor_events (
      id ${text} primary key,
      type ${text} not null,
      received_at ${int} not null
    ) ${end}`,
    `create table sandbox_intents (
      id ${text} primary key,
      idempotency_key ${text} not null unique,
      amount ${int} not null check (amount > 0),
      refunded ${int} not null check (refunded >= 0 and refunded <= amount),
      method ${text},
      status ${text} not null,
      decline_code ${text},
      client_secret ${text} not null,
      metadata ${text} not null,
      created_at ${int} not null
    ) ${end}`,
    `create table sandbox_refunds (
      id ${text} primary key,
      idempotency_key ${text} not null unique,
      intent_id ${text} not null references sandbox_intents (id),
      amount ${int} not null check (amount > 0),
      status ${text} not null,
      metadata ${text} not null,
      failure_reason ${text},
      created_at ${int} not null
    ) ${end}`,
    `create table sandbox_events (
      id ${text} primary key,
      body ${text} not null,
      delivered_at ${int},
      attempts ${int} not null,
      due_at ${int} not null,
      created_at ${int} not null
    ) ${end}`,
    `create index sandbox_events_due on sandbox_events (due_at) where delivered_at is null`,
  ],
}
