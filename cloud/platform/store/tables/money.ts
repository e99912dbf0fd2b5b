import { defineTable, flag, growing, instant, int, oneOf, text } from '../table.ts'

/** Conversations with the card processor (`commerce/money`), one row per request. */
export const moneyTables = {
  money_operations: defineTable({
    kind: growing(['payment', 'deposit', 'refund', 'method', 'customer', 'orphan']).fixed,
    /** Id of the row that the operation belongs to: a payment, a wallet transaction, a refund, a method, a customer, an orphaned payment. */
    subject: int.fixed,
    processor: text.fixed,
    /** The processor's last answer (`commerce/money/operation-state.ts`). */
    state: oneOf([
      'unanswered',
      'processing',
      'requires_action',
      'declined',
      'succeeded',
      'failed',
      'canceled',
    ]),
    /** `ended`: the service wants the operation cancelled or undone. */
    goal: oneOf(['done', 'ended']).default('done'),
    /** The request to the processor got no answer. */
    in_doubt: flag.default(0),
    /** The processor's id of the operation. Null until it is known. */
    processor_ref: text.nullable,
    /** A customer completes the operation with it. Sealed. */
    client_secret: text.nullable,
    /** The issuer's decline code. */
    reason: text.nullable,
    /**
     * When the service cancels an unfinished operation, or reports an unfinished refund. Null: never. Older refunds have
     * null, and are reported all the same.
     */
    give_up_at: instant.nullable,
    /** Since when nothing waits for the operation, although the processor has given no final answer. */
    given_up_at: instant.nullable,
    /** Names the operation to the processor, together with its kind and subject (`keyOf`). */
    started_at: instant.fixed,
  })
    .primaryKey('kind', 'subject')
    .uniqueIndex('money_operations_by_ref', ['processor_ref', 'processor'], 'processor_ref is not null')
    .index('money_operations_given_up', ['kind', 'subject'], 'given_up_at is not null'),
}
