import {
  WalletTransactionStatus,
  WalletTransactionType,
} from '../../../../protocol/contract/consumer-wallet.ts'
import { defineTable, id, instant, int, oneOf, text } from '../table.ts'

/**
 * Prepaid wallets (C §4.6) and loyalty points (C §4.5). In both, the entries are the ledger and the balance is their
 * sum (I6).
 */
export const walletTables = {
  /** Created with the first entry. */
  wallets: defineTable({
    user_id: int.primaryKey.references('users').fixed,
    balance: int.check('>= 0'),
    /**
     * Cents that the wallet owes because a bank took back a deposit that was spent. Later credits pay it first, so a
     * wallet with a debt is empty. The sum of `wallet_transactions.owed`.
     */
    debt: int.check('>= 0').default(0),
    updated_at: instant,
  }),
  /**
   * The transactions that a customer sees. A deposit appears at its start, any other transaction when it has happened.
   */
  wallet_transactions: defineTable({
    id,
    user_id: int.references('users').fixed,
    type: oneOf(WalletTransactionType.options).fixed,
    /** Signed cents. */
    amount: int.fixed,
    /** Only a deposit can have a status other than completed. */
    status: oneOf(WalletTransactionStatus.options),
    order_id: int.references('orders').nullable.fixed,
    payment_id: int.unique.references('payments').nullable.fixed,
    refund_id: int.unique.references('refunds').nullable.fixed,
    /** For a deposit: the card processor, and the payment method if the customer named one. */
    processor: text.nullable.fixed,
    method: text.nullable.fixed,
    /** The processor's customer that owns the saved method, if it is a saved one. */
    customer_ref: text.nullable,
    /** For an adjustment: the refund or dispute at the processor that caused it. Null for the payment of a debt. */
    move_ref: text.unique.nullable.fixed,
    /**
     * Change of the wallet's debt in cents. Above 0: owed after a deposit was taken back. Below 0: paid by a credit.
     */
    owed: int.fixed,
    /** For a deposit: identifies the request, so that a repeated request creates one intent. */
    request_key: text.nullable.fixed,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .check("(type = 'deposit') = (processor is not null)")
    .check("type = 'deposit' or status = 'completed'")
    .index('wallet_deposits_by_request', ['user_id', 'request_key'], 'request_key is not null')
    .index('wallet_transactions_by_user', ['user_id', 'id'])
    .index('wallet_transactions_pending', ['user_id'], "status = 'pending'"),
  /** Append-only. Each entry changes the balance of one wallet for one transaction: a deposit is credited once (I6). */
  wallet_entries: defineTable({
    id,
    transaction_id: int.unique.references('wallet_transactions').fixed,
    user_id: int.references('users').fixed,
    amount: int.fixed,
    balance_after: int.check('>= 0').fixed,
    created_at: instant.fixed,
  }).index('wallet_entries_by_user', ['user_id', 'id']),
  /** Created with the first entry. */
  loyalty_accounts: defineTable({
    user_id: int.primaryKey.references('users').fixed,
    points: int.check('>= 0'),
    updated_at: instant,
  }),
  /** Append-only: points that an order earned, and points that its refunds took back. */
  loyalty_entries: defineTable({
    id,
    user_id: int.references('users').fixed,
    order_id: int.references('orders').fixed,
    kind: oneOf(['earned', 'refunded']).fixed,
    points: int.check("<> 0 or kind = 'earned'").fixed,
    points_after: int.check('>= 0').fixed,
    /** The order's earning rate. Refunds use it, even if the setting has changed. */
    cents_per_point: int.check('> 0').fixed,
    created_at: instant.fixed,
  })
    .index('loyalty_entries_by_order', ['order_id'])
    .index('loyalty_entries_by_user', ['user_id', 'id'])
    // An order earns once.
    .uniqueIndex('loyalty_earned_once', ['order_id'], "kind = 'earned'"),
}
