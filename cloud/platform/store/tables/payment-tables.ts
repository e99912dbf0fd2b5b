import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Money, as the service keeps it. */
export interface PaymentTables {
  payments: {
    id: Generated<number>
    order_id: Fixed<number>
    user_id: Fixed<number>
    /** sandbox | stripe | external | wallet | none (a zero total) */
    processor: Fixed<string>
    /** The processor's id of it, once known. */
    processor_ref: string | null
    /** An id or a token of the processor's; `external`, `wallet`. */
    method: Fixed<string>
    /** card | platform_a | platform_b */
    type: Generated<string>
    /** The customer at the processor whose saved method it is, or to whom it will be saved. */
    customer_ref: Generated<string | null>
    /** Once it has paid, the method is saved. */
    saves_method: Generated<Flag>
    amount: Fixed<number>
    /** pending | requires_action | authorized | completed | failed | canceled */
    status: string
    decline_code: string | null
    client_secret: string | null
    confirmed_by_key: string | null
    /** The order could not take the money any more: it goes back. */
    is_late: Flag
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  refunds: {
    id: Generated<number>
    order_id: Fixed<number>
    payment_id: Fixed<number>
    /** The line it is for, or null for an amount of the whole order. */
    item_id: Fixed<number | null>
    quantity: Fixed<number>
    /** Includes the share's tax. */
    amount: Fixed<number>
    tax: Fixed<number>
    /** customer | short | timed_out | failed | cancelled | late_payment */
    reason: Fixed<string>
    /** pending | succeeded | failed */
    status: string
    processor_ref: string | null
    failure_reason: string | null
    /** Who asked for it; `service` where it followed from what happened. */
    actor: Generated<string>
    /** Names the request that asked for it, so that the same request asks for it once. */
    request_key: Generated<string | null>
    /** How often the processor gave no answer. */
    attempts: Generated<number>
    /** How many refunds of the same money it refused before this one. */
    refusals: Generated<number>
    /** Pending: when the processor is asked (again). Failed: when another one takes its place. Null: never. */
    due_at: Generated<Instant | null>
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  /** Events of the card processor, each applied in the transaction that inserts it here (I3). */
  processor_events: { id: Fixed<string>; type: Fixed<string>; received_at: Fixed<Instant> }
}
