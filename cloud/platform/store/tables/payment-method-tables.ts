import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Who users are at card processors, and what they have saved there. */
export interface PaymentMethodTables {
  /** One user at one processor; made with the first method that is saved. */
  processor_customers: {
    id: Generated<number>
    user_id: Fixed<number>
    processor: Fixed<string>
    /** The processor's id, once known. */
    ref: string | null
    created_at: Fixed<Instant>
  }
  payment_methods: {
    id: Generated<number>
    customer_id: Fixed<number>
    user_id: Fixed<number>
    processor: Fixed<string>
    /** The processor's id of the method; while it is `saving`, possibly a token for it. */
    ref: string
    /** saving | saved */
    state: string
    /** Null while the processor has not told. */
    type: string | null
    brand: string | null
    last4: string | null
    exp_month: number | null
    exp_year: number | null
    is_default: Flag
    /** Of one that is being saved: when the processor is asked (again). */
    due_at: Instant | null
    attempts: number
    created_at: Fixed<Instant>
  }
  /** What is no longer ours and has to go at the processor, too: deleted once it has. */
  processor_removals: {
    id: Generated<number>
    processor: Fixed<string>
    /** Of a customer whose id was never learned it is null: it is learned first. */
    customer_ref: string | null
    customer_id: Fixed<number>
    user_id: Fixed<number>
    /** When the customer was begun. */
    begun_at: Fixed<Instant>
    /** Null: the customer goes, with every method. */
    method: Fixed<string | null>
    due_at: Instant
    attempts: number
  }
  /** What tells this installation's objects at a processor from those of others that share the account. */
  installation: { id: Fixed<number>; name: Fixed<string> }
}
