import {
  WalletTransactionStatus,
  WalletTransactionType,
} from '../../../../protocol/contract/consumer-wallet.ts'
import { defineTable, id, instant, int, oneOf, text } from '../table.ts'

/** Prepaid wallets (C §4.6) and loyalty points (C §4.5). Of both, the entries are the ledger and the balance is their sum (I6). */
export const walletTables = {
  /** Made with the first entry. */
  wallets: defineTable({
    user_id: int.primaryKey.references('users').fixed,
    balance: int.check('>= 0'),
    /**
     * Cents that the wallet owes: its bank took a deposit back that was spent. Later credits pay it first, so that a wallet
     * with a debt is empty. The sum of `wallet_transactions.owed`.
     */
    debt: int.check('>= 0').default(0),
    updated_at: instant,
  }),
  /** What a customer sees of the wallet: of a deposit from the beginning, of anything else when it has happened. */
  wallet_transactions: defineTable({
    id,
    user_id: int.references('users').fixed,
    type: oneOf(WalletTransactionType.options).fixed,
    /** Signed cents. */
    amount: int.fixed,
    /** Only a deposit is ever anything but completed. */
    status: oneOf(WalletTransactionStatus.options),
    order_id: int.references('orders').nullable.fixed,
    payment_id: int.unique.references('payments').nullable.fixed,
    refund_id: int.unique.references('refunds').nullable.fixed,
    /** Of a deposit: the card processor, and its payment method if the customer named one. */
    processor: text.nullable.fixed,
    method: text.nullable.fixed,
    /** The customer at the processor whose saved method it is, if it is one. */
    customer_ref: text.nullable,
    /** Of an adjustment: the refund or dispute at the processor that it follows; null of the payment of a debt. */
    move_ref: text.unique.nullable.fixed,
    /** Change of the wallet's debt, in cents: above 0 what a deposit taken back left owing, below 0 what a credit has paid. */
    owed: int.fixed,
    /** Of a deposit: names the request that asked for it, so that the same request makes one intent. */
    request_key: text.nullable.fixed,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .check("(type = 'deposit') = (processor is not null)")
    .check("type = 'deposit' or status = 'completed'")
    .index('wallet_deposits_by_request', ['user_id', 'request_key'], 'request_key is not null')
    .index('wallet_transactions_by_user', ['user_id', 'id'])
    .index('wallet_transactions_pending', ['user_id'], "status = 'pending'"),
  /** Append-only: each moves the balance of one wallet, for one transaction: a deposit is credited once (I6). */
  wallet_entries: defineTable({
    id,
    transaction_id: int.unique.references('wallet_transactions').fixed,
    user_id: int.references('users').fixed,
    amount: int.fixed,
    balance_after: int.check('>= 0').fixed,
    created_at: instant.fixed,
  }).index('wallet_entries_by_user', ['user_id', 'id']),
  /** Made with the first entry. */
  loyalty_accounts: defineTable({
    user_id: int.primaryKey.references('users').fixed,
    points: int.check('>= 0'),
    updated_at: instant,
  }),
  /** Append-only: what an order earned, and what its refunds took back. */
  loyalty_entries: defineTable({
    id,
    user_id: int.references('users').fixed,
    order_id: int.references('orders').fixed,
    kind: oneOf(['earned', 'refunded']).fixed,
    points: int.check("<> 0 or kind = 'earned'").fixed,
    points_after: int.check('>= 0').fixed,
    /** The rate at which the order earned: refunds take back by it, whatever the setting has become. */
    cents_per_point: int.check('> 0').fixed,
    created_at: instant.fixed,
  })
    .index('loyalty_entries_by_order', ['order_id'])
    .index('loyalty_entries_by_user', ['user_id', 'id'])
    // An order earns once.
    .uniqueIndex('loyalty_earned_once', ['order_id'], "kind = 'earned'"),
}
