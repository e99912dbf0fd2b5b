/**
 * A card processor, as the service needs it: payment intents and refunds, each made under an idempotency key, so that
 * what a crash left in doubt is asked again with the same words.
 */
export interface CardProcessor {
  /** As `payments.processor` names it. */
  readonly name: 'sandbox'
  /** Whether it would take such a payment method. */
  knowsMethod(method: string): boolean
  /** Creates and confirms an intent, or returns the one that the key has made before. */
  createIntent(request: IntentRequest): Promise<Intent>
  /** Completes an intent after its customer's action. */
  confirmIntent(ref: string): Promise<Intent>
  /** Gives an unfinished intent up; of a finished one it tells the end. */
  cancelIntent(ref: string): Promise<Intent>
  /** Gives money of an intent back, or tells of the refund that the key has made before, as it was then. */
  createRefund(request: RefundRequest): Promise<ProcessorRefund>
  /** What has become of a refund. */
  readRefund(ref: string): Promise<ProcessorRefund>
}

export interface IntentRequest {
  idempotencyKey: string
  /** Cents, above 0. */
  amount: number
  currency: string
  /** Null: the customer will choose one in the processor's own form, with the intent's client secret. */
  method: string | null
  /** What it is for; comes back in events. */
  metadata: { payment_id: number; order_id: number } | { deposit_id: number }
}

export type IntentStatus = 'processing' | 'requires_action' | 'succeeded' | 'failed' | 'canceled'

export interface Intent {
  ref: string
  status: IntentStatus
  declineCode: string | null
  clientSecret: string | null
}

export interface RefundRequest {
  idempotencyKey: string
  /** The intent's. */
  ref: string
  amount: number
  /** Comes back in events. */
  metadata: { refund_id: number; order_id: number }
}

export interface ProcessorRefund {
  ref: string
  /** `pending`: the processor is at work on it, and an event will tell. Success may turn into failure later. */
  status: 'pending' | 'succeeded' | 'failed'
  failureReason: string | null
}

/** The processor could not be reached: nobody knows whether it has done what was asked. */
export class ProcessorUnavailable extends Error {
  override readonly name = 'ProcessorUnavailable'
}
