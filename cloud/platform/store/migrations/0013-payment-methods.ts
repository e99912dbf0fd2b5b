import type { CloudMigration } from './migration.ts'

/** Customers at card processors and their saved methods; the sandbox's own books of them. */
export const paymentMethods: CloudMigration = {
  name: '0013-payment-methods',
  statements: ({ id, int, text, end }) => [
    `create table processor_customers (
      id ${id},
      user_id ${int} not null references users (id),
      processor ${text} not null,
      ref ${text},
      created_at ${int} not null,
      unique (user_id, processor)
    ) ${end}`,
    `create table payment_methods (
      id ${id},
      customer_id ${int} not null references processor_customers (id) on delete cascade,
      user_id ${int} not null references users (id),
      processor ${text} not null,
      ref ${text} not null,
      state ${text} not null check (state in ('saving', 'saved')),
      type ${text} check (type in ('card', 'platform_a', 'platform_b')),
      brand ${text},
      last4 ${text},
      exp_month ${int},
      exp_year ${int},
      is_default ${int} not null check (is_default in (0, 1)),
      due_at ${int},
      attempts ${int} not null,
      created_at ${int} not null,
      unique (customer_id, ref),
      check (state = 'saving' or (type is not null and brand is not null and last4 is not null
        and exp_month is not null and exp_year is not null)),
      check ((state = 'saving') = (due_at is not null))
    ) ${end}`,
    `create index payment_methods_by_user on payment_methods (user_id, id)`,
    // Of one that is being saved it is a wish.
    `create unique index payment_methods_one_default on payment_methods (customer_id)
      where is_default = 1 and state = 'saved'`,
    `create index payment_methods_due on payment_methods (due_at) where due_at is not null`,
    `create table processor_removals (
      id ${id},
      processor ${text} not null,
      customer_ref ${text},
      customer_id ${int} not null,
      user_id ${int} not null,
      begun_at ${int} not null,
      method ${text},
      due_at ${int} not null,
      attempts ${int} not null
    ) ${end}`,
    `create index processor_removals_due on processor_removals (due_at)`,
    `create table installation (
      id ${int} primary key check (id = 1),
      name ${text} not null
    ) ${end}`,
    `create table sandbox_customers (
      id ${text} primary key,
      idempotency_key ${text} not null unique,
      is_removed ${int} not null check (is_removed in (0, 1)),
      created_at ${int} not null
    ) ${end}`,
    `create table sandbox_methods (
      customer_id ${text} not null references sandbox_customers (id),
      method ${text} not null,
      primary key (customer_id, method)
    ) ${end}`,
    `create table sandbox_setup_intents (
      id ${text} primary key,
      idempotency_key ${text} not null unique,
      customer_id ${text} not null references sandbox_customers (id),
      client_secret ${text} not null,
      created_at ${int} not null
    ) ${end}`,
  ],
}
