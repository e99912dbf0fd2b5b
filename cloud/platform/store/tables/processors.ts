import { PaymentMethodType } from '../../../../protocol/contract/consumer-payments.ts'
import { defineTable, flag, growing, id, instant, int, oneOf, text } from '../table.ts'

const isKnown = `(${['type', 'brand', 'last4', 'exp_month', 'exp_year'].map((name) => `${name} is not null`).join(' and ')})`

/** Customers at card processors, and their saved methods. */
export const processorTables = {
  /** A user at a processor, created with the first saved method. */
  processor_customers: defineTable({
    id,
    user_id: int.references('users'),
    processor: text.fixed,
    /** The processor's id. Null until known. */
    ref: text.nullable,
    created_at: instant.fixed,
  }).unique('user_id', 'processor'),
  payment_methods: defineTable({
    id,
    customer_id: int.references('processor_customers', { onDelete: 'cascade' }).fixed,
    /** Another user than the customer's, if a guest signed in to an account that has a customer of its own. */
    user_id: int.references('users'),
    processor: text.fixed,
    /** The processor's id of the method. Until that is known, it may be a token. */
    ref: text,
    /** `removing`: the customer has removed it, and it is being detached at the processor. */
    state: oneOf(['saving', 'saved', 'removing']),
    /** Null until the processor has reported it. */
    type: growing(PaymentMethodType.options).nullable,
    brand: text.nullable,
    last4: text.nullable,
    exp_month: int.nullable,
    exp_year: int.nullable,
    is_default: flag,
    created_at: instant.fixed,
  })
    .unique('customer_id', 'ref')
    .check(`state <> 'saved' or ${isKnown}`)
    .index('payment_methods_by_user', ['user_id', 'id'])
    // While a method is being saved, `is_default` is only a request.
    .uniqueIndex('payment_methods_one_default', ['customer_id'], "is_default = 1 and state = 'saved'"),
  /** Distinguishes this installation's objects at a processor from those of others that share the account. */
  installation: defineTable({ id: int.primaryKey.check('= 1').fixed, name: text.fixed }),
}

/** The sandbox processor's own books. They represent another party, so they have separate transactions. */
export const sandboxTables = {
  sandbox_intents: defineTable({
    id: text.primaryKey.fixed,
    idempotency_key: text.unique.fixed,
    amount: int.check('> 0').fixed,
    refunded: int.check('>= 0 and refunded <= amount'),
    /** Null: the customer chooses. */
    method: text.nullable.fixed,
    status: text,
    decline_code: text.nullable,
    client_secret: text.fixed,
    metadata: text.fixed,
    created_at: instant.fixed,
  }),
  sandbox_refunds: defineTable({
    id: text.primaryKey.fixed,
    idempotency_key: text.unique.fixed,
    intent_id: text.references('sandbox_intents').fixed,
    amount: int.check('> 0').fixed,
    status: text,
    metadata: text.fixed,
    failure_reason: text.nullable.fixed,
    created_at: instant.fixed,
  }),
  /** Payments that a cardholder's bank has taken back. */
  sandbox_disputes: defineTable({
    id: text.primaryKey.fixed,
    intent_id: text.unique.references('sandbox_intents').fixed,
    amount: int.check('> 0').fixed,
    status: oneOf(['open', 'won', 'lost']),
    created_at: instant.fixed,
  }),
  sandbox_events: defineTable({
    id: text.primaryKey.fixed,
    body: text.fixed,
    delivered_at: instant.nullable,
    created_at: instant.fixed,
  }).index('sandbox_events_by_age', ['delivered_at']),
  sandbox_customers: defineTable({
    id: text.primaryKey.fixed,
    idempotency_key: text.unique.fixed,
    is_removed: flag,
    created_at: instant.fixed,
  }),
  /** Saved cards. Each time a card is saved creates another method. */
  sandbox_methods: defineTable({
    id: text.primaryKey.fixed,
    idempotency_key: text.unique.fixed,
    /** Null after its removal. It can then neither pay nor be saved again. */
    customer_id: text.references('sandbox_customers').nullable,
    /** The name of its card. */
    card: text.fixed,
    type: growing(PaymentMethodType.options).fixed,
    created_at: instant.fixed,
  }),
  sandbox_setup_intents: defineTable({
    id: text.primaryKey.fixed,
    idempotency_key: text.unique.fixed,
    customer_id: text.references('sandbox_customers').fixed,
    client_secret: text.fixed,
    created_at: instant.fixed,
  }),
}
