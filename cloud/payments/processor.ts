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
  createRefund(request: RefundRequest): Promise<ProcessorRefund>
}

export interface IntentRequest {
  idempotencyKey: string
  /** Cents, above 0. */
  amount: number
  currency: string
  method: string
  /** Comes back in events. */
  metadata: { payment_id: number; order_id: number }
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
}

export interface ProcessorRefund {
  ref: string
  status: 'succeeded' | 'failed'
  failureReason: string | null
}

/** The processor could not be reached: nobody knows whether it has done what was asked. */
export class ProcessorUnavailable extends Error {
  override readonly name = 'ProcessorUnavailable'
}
