import { PaymentMethodType } from '../../../../protocol/contract/consumer-payments.ts'
import { defineTable, flag, growing, id, instant, int, listOf, oneOf, text } from '../table.ts'

/** Statuses of an unfinished payment. */
export const PAYMENT_UNDER_WAY = ['pending', 'requires_action', 'authorized'] as const
const isLive = `is_late = 0 and status in ${listOf([...PAYMENT_UNDER_WAY, 'completed'])}`

/** Payments and refunds of orders. The processor's state is in `money_operations`. */
export const paymentTables = {
  payments: defineTable({
    id,
    order_id: int.references('orders').fixed,
    /**
     * The order as frozen for this payment. The processor's metadata contains it and the hub, so that a payment that the
     * books have lost is recognised. Null if no processor is involved.
     */
    order_uuid: text.nullable.fixed,
    hub_id: int.references('hubs').fixed,
    /** The owner of the hub at checkout. */
    owner_id: int.references('owners').fixed,
    user_id: int.references('users'),
    /** none: a total of zero. */
    processor: growing(['sandbox', 'stripe', 'external', 'wallet', 'none']).fixed,
    /** The processor's id or token; `external`, `wallet`. */
    method: text.fixed,
    type: growing(PaymentMethodType.options).default('card'),
    /** The processor's customer that owns the saved method, or will own it. */
    customer_ref: text.nullable,
    /** The method is saved after it has paid. */
    saves_method: flag.default(0),
    amount: int.check('>= 0').fixed,
    status: oneOf([...PAYMENT_UNDER_WAY, 'completed', 'failed', 'canceled']),
    confirmed_by_key: text.nullable,
    /** Since when this payment, or the payments that it replaces, hold the order's stock and bins. */
    held_since: instant.nullable.fixed,
    /** The order could not accept the money any more. It is refunded. */
    is_late: flag,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .index('payments_by_order', ['order_id'])
    .index('payments_by_owner', ['owner_id', 'created_at', 'id'], "status = 'completed'")
    .index('payments_under_way', ['status', 'updated_at'], `status in ${listOf(PAYMENT_UNDER_WAY)}`)
    // An order is paid once (I3). Any further payment is late and is refunded.
    .uniqueIndex('payments_one_live', ['order_id'], isLive),
  refunds: defineTable({
    id,
    order_id: int.references('orders').fixed,
    payment_id: int.references('payments').fixed,
    /** Hub and owner of the payment. */
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** The refunded line. Null: an amount of the whole order. */
    item_id: int.references('order_items').nullable.fixed,
    quantity: int.check('>= 0').fixed,
    /** Includes the share's tax. */
    amount: int.check('>= 0').fixed,
    tax: int.check('>= 0 and tax <= amount').fixed,
    /**
     * `processor`: made at the processor. `dispute`: the cardholder's bank took the money back; `failed` after its
     * return.
     */
    reason: growing([
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
    /** Who requested it; `service` if it followed from an event. */
    actor: text.default('service'),
    /** Identifies the request, so that a repeated request causes one refund. */
    request_key: text.nullable,
    /** How many refunds of the same money the processor refused before this one. */
    refusals: int.default(0),
    /**
     * The newest refund of the order when this one failed: only later ones can replace it. Null before, and for
     * failures that an earlier version booked.
     */
    failed_after: int.nullable,
    /** The failed refund that a person has paid outside of the service. Null: the service makes this refund. */
    settles: int.nullable.fixed,
    created_at: instant.fixed,
    /** When it first succeeded. A bank may return the money later. */
    completed_at: instant.nullable,
    updated_at: instant,
  })
    .index('refunds_by_order', ['order_id'])
    .index('refunds_by_payment', ['payment_id'])
    .index('refunds_by_owner', ['owner_id', 'created_at', 'id'])
    .index('refunds_disputes', ['owner_id', 'created_at', 'id'], "reason = 'dispute'")
    .index('refunds_won_back', ['owner_id', 'updated_at', 'id'], "reason = 'dispute' and status = 'failed'")
    .uniqueIndex('refunds_settled_once', ['settles'], 'settles is not null')
    .index('refunds_by_person', ['actor'], "substr(actor, 1, 9) = 'identity:'"),
  /** Progress of the comparison of the books with the processor's refunds. */
  processor_checks: defineTable({
    processor: text.fixed,
    kind: oneOf(['payment', 'refund', 'dispute']).fixed,
    /** Everything before this time is compared. */
    checked_until: instant,
    /** Start of the running comparison. Null between two comparisons. */
    begun_at: instant.nullable,
    /** Where the comparison continues: the last entry of the previous page. */
    after: text.nullable,
  }).primaryKey('processor', 'kind'),
  /**
   * Payments of this installation that the processor has and the books lack, because a restored database has lost them.
   */
  orphaned_payments: defineTable({
    id,
    kind: oneOf(['order', 'deposit']).fixed,
    /** Cents. */
    amount: int.fixed,
    /** From the processor's metadata. The order's number may belong to another order by now. */
    order_id: int.nullable.fixed,
    order_uuid: text.nullable.fixed,
    hub_id: int.nullable.fixed,
    /** When the processor made it. */
    paid_at: instant.fixed,
  }),
  /**
   * Progress of each refund and dispute that the service did not request. The processor's events arrive in any order.
   */
  processor_moves: defineTable({
    /** The processor's id. */
    ref: text.primaryKey.fixed,
    /** 0: pending. 1: the money is gone. 2: it is back, or never left. It only grows. */
    stage: int.check('between 0 and 2'),
    updated_at: instant,
  }),
  /** Events of the card processor. The transaction that inserts an event here also applies it (I3). */
  processor_events: defineTable({
    id: text.primaryKey.fixed,
    type: text.fixed,
    received_at: instant.fixed,
  }).index('processor_events_by_age', ['received_at']),
}
