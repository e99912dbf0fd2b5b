import {
  WalletTransactionStatus,
  WalletTransactionType,
} from '../../../../protocol/contract/consumer-wallet.ts'
import { defineTable, growing, id, instant, int, oneOf, text } from '../table.ts'

const account = oneOf(['wallet', 'points']).fixed

/** The ledger of prepaid wallets (C §4.6) in cents, and of loyalty points (C §4.5). */
export const ledgerTables = {
  /** The sums of the ledger (I6). Created with the first entry. */
  ledger_accounts: defineTable({
    user_id: int.references('users').fixed,
    account,
    balance: int.check('>= 0'),
    /**
     * Cents that the wallet owes because a bank took back a deposit that was spent. Later credits pay it first, so a
     * wallet with a debt is empty.
     */
    debt: int.check('>= 0'),
    /** Number of posted entries. */
    entries: int,
  }).primaryKey('user_id', 'account'),
  /**
   * Append-only. An entry is posted once: it then has a position and a balance, and never changes again. A deposit
   * appears at its start, any other entry when it is posted.
   */
  ledger_entries: defineTable({
    id,
    /** A deposit that is not posted yet goes along when its guest signs in to an account. */
    user_id: int.references('users'),
    account,
    type: growing([...WalletTransactionType.options, 'earned']).fixed,
    /** Signed cents or points. */
    amount: int.fixed,
    /** Change of the debt in cents. Above 0: owed after a deposit was taken back. Below 0: paid by a credit. */
    owed: int.default(0),
    status: oneOf(WalletTransactionStatus.options),
    /** Number of the entry in its account, from 1. Null until it is posted. */
    position: int.nullable,
    balance_after: int.check('>= 0').nullable,
    order_id: int.references('orders').nullable.fixed,
    /**
     * The fact that the entry follows from, at most once: `payment 7`, `refund 7`, `order 7`, or the processor's id of a
     * refund or dispute of a deposit. `guest 7`: the account of guest 7, who signed in. Null for a deposit, the payment of
     * a debt, an adjustment of points, and the entry that empties a guest's account.
     */
    cause: text.nullable.fixed,
    /** For points: the order's earning rate. Refunds use it, even if the setting has changed. */
    cents_per_point: int.check('> 0').nullable.fixed,
    /** For a deposit: the card processor, and the payment method if the customer named one. */
    processor: text.nullable.fixed,
    method: text.nullable.fixed,
    /** The processor's customer that owns the saved method, if it is a saved one. */
    customer_ref: text.nullable,
    /** For a deposit: identifies the request, so that a repeated request creates one intent. */
    request_key: text.nullable.fixed,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .unique('account', 'cause')
    .check("(type = 'deposit') = (processor is not null)")
    .check("type = 'deposit' or status = 'completed'")
    .check("(status = 'completed') = (position is not null) and (position is null) = (balance_after is null)")
    .check("(account = 'points') = (cents_per_point is not null)")
    .index('ledger_deposits_by_request', ['user_id', 'request_key'], 'request_key is not null')
    .index('ledger_entries_by_user', ['user_id', 'account', 'id'])
    .index('ledger_entries_by_order', ['order_id'], 'order_id is not null')
    .index('ledger_entries_pending', ['user_id'], "status = 'pending'")
    .uniqueIndex('ledger_entries_by_position', ['user_id', 'account', 'position'], 'position is not null'),
}
