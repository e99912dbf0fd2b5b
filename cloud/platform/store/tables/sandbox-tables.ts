import type { Fixed, Flag, Instant } from './columns.ts'

/** The sandbox processor's own books: another party's, written in transactions of its own. */
export interface SandboxTables {
  sandbox_intents: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    amount: Fixed<number>
    refunded: number
    /** Null: left to its customer. */
    method: Fixed<string | null>
    status: string
    decline_code: string | null
    client_secret: Fixed<string>
    metadata: Fixed<string>
    created_at: Fixed<Instant>
  }
  sandbox_refunds: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    intent_id: Fixed<string>
    amount: Fixed<number>
    status: string
    metadata: Fixed<string>
    failure_reason: Fixed<string | null>
    created_at: Fixed<Instant>
  }
  sandbox_events: {
    id: Fixed<string>
    body: Fixed<string>
    delivered_at: Instant | null
    attempts: number
    due_at: Instant
    created_at: Fixed<Instant>
  }
  sandbox_customers: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    is_removed: Flag
    created_at: Fixed<Instant>
  }
  sandbox_methods: { customer_id: Fixed<string>; method: Fixed<string> }
  sandbox_setup_intents: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    customer_id: Fixed<string>
    client_secret: Fixed<string>
    created_at: Fixed<Instant>
  }
}
