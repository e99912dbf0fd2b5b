import type { CloudMigration } from './migration.ts'

/** Wallets and loyalty points. */
export const wallet: CloudMigration = {
  name: '0011-wallet',
  statements: ({ id, int, text, end }) => [
    `create table wallets (
      user_id ${int} primary key references users (id),
      balance ${int} not null check (balance >= 0),
      updated_at ${int} not null
    ) ${end}`,
    `create table wallet_transactions (
      id ${id},
      user_id ${int} not null references users (id),
      type ${text} not null check (type in ('deposit', 'debit', 'refund', 'adjustment')),
      amount ${int} not null,
      status ${text} not null check (status in ('pending', 'completed', 'failed', 'canceled')),
      order_id ${int} references orders (id),
      payment_id ${int} unique references payments (id),
      refund_id ${int} unique references refunds (id),
      processor ${text},
      method ${text},
      customer_ref ${text},
      processor_ref ${text},
      client_secret ${text},
      decline_code ${text},
      request_key ${text},
      created_at ${int} not null,
      updated_at ${int} not null,
      check (type = 'deposit' or status = 'completed'),
      check ((type = 'deposit') = (processor is not null))
    ) ${end}`,
    `create index wallet_transactions_by_user on wallet_transactions (user_id, id)`,
    `create index wallet_transactions_pending on wallet_transactions (user_id) where status = 'pending'`,
    `create index wallet_deposits_under_way on wallet_transactions (updated_at) where status = 'pending'`,
    `create unique index wallet_deposits_by_processor_ref on wallet_transactions (processor_ref, processor)
      where processor_ref is not null`,
    `create index wallet_deposits_by_request on wallet_transactions (user_id, request_key)
      where request_key is not null`,
    // Each transaction moves the balance once: a deposit is credited once, however many events say so (I6).
    `create table wallet_entries (
      id ${id},
      transaction_id ${int} not null unique references wallet_transactions (id),
      user_id ${int} not null references users (id),
      amount ${int} not null check (amount <> 0),
      balance_after ${int} not null check (balance_after >= 0),
      created_at ${int} not null
    ) ${end}`,
    `create index wallet_entries_by_user on wallet_entries (user_id, id)`,
    `create table loyalty_accounts (
      user_id ${int} primary key references users (id),
      points ${int} not null check (points >= 0),
      updated_at ${int} not null
    ) ${end}`,
    `create table loyalty_entries (
      id ${id},
      user_id ${int} not null references users (id),
      order_id ${int} not null references orders (id),
      kind ${text} not null check (kind in ('earned', 'refunded')),
      points ${int} not null check (points <> 0 or kind = 'earned'),
      points_after ${int} not null check (points_after >= 0),
      cents_per_point ${int} not null check (cents_per_point > 0),
      created_at ${int} not null
    ) ${end}`,
    `create index loyalty_entries_by_order on loyalty_entries (order_id)`,
    `create index loyalty_entries_by_user on loyalty_entries (user_id, id)`,
    // An order earns once.
    `create unique index loyalty_earned_once on loyalty_entries (order_id) where kind = 'earned'`,
  ],
}
