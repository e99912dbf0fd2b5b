import { PaymentMethodType } from '../../../../protocol/contract/consumer-payments.ts'
import { defineTable, flag, id, instant, int, oneOf, text, listOf } from '../table.ts'

/** Statuses of a payment that has not ended. */
export const PAYMENT_UNDER_WAY = ['pending', 'requires_action', 'authorized'] as const
const isLive = `is_late = 0 and status in ${listOf([...PAYMENT_UNDER_WAY, 'completed'])}`

/** Payments and refunds of orders. What the processor says of them is in `money_operations`. */
export const paymentTables = {
  payments: defineTable({
    id,
    order_id: int.references('orders').fixed,
    /**
     * The order as it was frozen for this payment, and its hub: the processor's metadata names both, so that a payment which
     * the books have lost is recognised. Null of payments that no processor was asked for.
     */
    order_uuid: text.nullable.fixed,
    hub_id: int.references('hubs').nullable.fixed,
    user_id: int.references('users').fixed,
    /** none: a total of zero. */
    processor: oneOf(['sandbox', 'stripe', 'external', 'wallet', 'none']).fixed,
    /** An id or a token of the processor's; `external`, `wallet`. */
    method: text.fixed,
    type: oneOf(PaymentMethodType.options).default('card'),
    /** The customer at the processor whose saved method it is, or to whom it will be saved. */
    customer_ref: text.nullable,
    /** Once it has paid, the method is saved. */
    saves_method: flag.default(0),
    amount: int.check('>= 0').fixed,
    status: oneOf([...PAYMENT_UNDER_WAY, 'completed', 'failed', 'canceled']),
    confirmed_by_key: text.nullable,
    /** Since when its order's stock and bins are held, by this payment or by those that it replaces. */
    held_since: instant.nullable.fixed,
    /** The order could not take the money any more: it goes back. */
    is_late: flag,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .index('payments_by_order', ['order_id'])
    .index('payments_under_way', ['status', 'updated_at'], `status in ${listOf(PAYMENT_UNDER_WAY)}`)
    // An order is paid once (I3): whatever else arrives is late and goes back.
    .uniqueIndex('payments_one_live', ['order_id'], isLive),
  refunds: defineTable({
    id,
    order_id: int.references('orders').fixed,
    payment_id: int.references('payments').fixed,
    /** The line it is for, or null for an amount of the whole order. */
    item_id: int.references('order_items').nullable.fixed,
    quantity: int.check('>= 0').fixed,
    /** Includes the share's tax. */
    amount: int.check('>= 0').fixed,
    tax: int.check('>= 0 and tax <= amount').fixed,
    /** `processor`: made at the processor. `dispute`: its cardholder's bank took the money back; `failed` once it returned it. */
    reason: oneOf([
      'customer',
      'short',
      'timed_out',
      'failed',
      'cancelled',
      'late_payment',
      'processor',
      'dispute',
    ]).fixed,
    status: oneOf(['pending', 'succeeded', 'failed']),
    failure_reason: text.nullable,
    /** Who asked for it; `service` where it followed from what happened. */
    actor: text.default('service'),
    /** Names the request that asked for it, so that the same request asks for it once. */
    request_key: text.nullable,
    /** How many refunds of the same money it refused before this one. */
    refusals: int.default(0),
    created_at: instant.fixed,
    updated_at: instant,
  })
    .index('refunds_by_order', ['order_id'])
    .index('refunds_by_payment', ['payment_id'])
    .index('refunds_by_person', ['actor'], "substr(actor, 1, 9) = 'identity:'"),
  /** How far the books have been compared with what a processor has given back. */
  processor_checks: defineTable({
    processor: text.fixed,
    kind: oneOf(['payment', 'refund', 'dispute']).fixed,
    /** All that was made before is compared. */
    checked_until: instant,
    /** When the comparison that is under way began; null between two of them. */
    begun_at: instant.nullable,
    /** Where it goes on: the last of the page before. */
    after: text.nullable,
  }).primaryKey('processor', 'kind'),
  /** Payments of this installation that the processor has and the books do not: a restored database has lost them. */
  orphaned_payments: defineTable({
    /** The processor's id. */
    ref: text.primaryKey.fixed,
    processor: text.fixed,
    kind: oneOf(['order', 'deposit']).fixed,
    /** Cents. */
    amount: int.fixed,
    /** As the processor's metadata names them; the order's number may be another order's by now. */
    order_id: int.nullable.fixed,
    order_uuid: text.nullable.fixed,
    hub_id: int.nullable.fixed,
    /** When the processor made it. */
    paid_at: instant.fixed,
    /** `open`: somebody, or the service, has to give the money back. */
    state: oneOf(['open', 'refunded', 'void', 'settled']),
    found_at: instant.fixed,
    updated_at: instant,
  }).index('orphaned_payments_open', ['found_at'], "state = 'open'"),
  /** How far each refund and dispute that the service did not ask for has come: its events arrive in any order. */
  processor_moves: defineTable({
    /** The processor's id. */
    ref: text.primaryKey.fixed,
    /** 0: under way. 1: the money is gone. 2: it is back, or never left. It only grows. */
    stage: int.check('between 0 and 2'),
    updated_at: instant,
  }),
  /** Events of the card processor, each applied in the transaction that inserts it here (I3). */
  processor_events: defineTable({
    id: text.primaryKey.fixed,
    type: text.fixed,
    received_at: instant.fixed,
  }).index('processor_events_by_age', ['received_at']),
}
