import type { Generated } from 'kysely'
import type { Fixed, Instant } from './columns.ts'

/** Prepaid wallets (C §4.6) and loyalty points (C §4.5). Of both, the entries are the ledger and the balance is their sum (I6). */
export interface WalletTables {
  /** Made with the first entry. */
  wallets: { user_id: Fixed<number>; balance: number; updated_at: Instant }
  /** What a customer sees of the wallet: of a deposit from the beginning, of anything else when it has happened. */
  wallet_transactions: {
    id: Generated<number>
    user_id: Fixed<number>
    /** deposit | debit | refund | adjustment */
    type: Fixed<string>
    /** Signed cents. */
    amount: Fixed<number>
    /** pending | completed | failed | canceled: only a deposit is ever anything but completed. */
    status: string
    order_id: Fixed<number | null>
    payment_id: Fixed<number | null>
    refund_id: Fixed<number | null>
    /** Of a deposit: the card processor, its payment method if one was named, its id and secret once known. */
    processor: Fixed<string | null>
    method: Fixed<string | null>
    /** The customer at the processor whose saved method it is, if it is one. */
    customer_ref: Generated<string | null>
    processor_ref: string | null
    client_secret: string | null
    decline_code: string | null
    /** Of a deposit: names the request that asked for it, so that the same request makes one intent. */
    request_key: Fixed<string | null>
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  /** Append-only: each moves the balance of one wallet, for one transaction. */
  wallet_entries: {
    id: Generated<number>
    transaction_id: Fixed<number>
    user_id: Fixed<number>
    amount: Fixed<number>
    balance_after: Fixed<number>
    created_at: Fixed<Instant>
  }
  /** Made with the first entry. */
  loyalty_accounts: { user_id: Fixed<number>; points: number; updated_at: Instant }
  /** Append-only: what an order earned, and what its refunds took back. */
  loyalty_entries: {
    id: Generated<number>
    user_id: Fixed<number>
    order_id: Fixed<number>
    /** earned | refunded */
    kind: Fixed<string>
    points: Fixed<number>
    points_after: Fixed<number>
    /** The rate at which the order earned: refunds take back by it, whatever the setting has become. */
    cents_per_point: Fixed<number>
    created_at: Fixed<Instant>
  }
}
