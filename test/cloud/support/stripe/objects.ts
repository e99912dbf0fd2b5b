import type { TestCard } from './cards.ts'

/** The server's objects, in Stripe's format. */
export interface StripeIntent {
  id: string
  object: 'payment_intent'
  amount: number
  currency: string
  status: 'requires_payment_method' | 'requires_action' | 'processing' | 'succeeded' | 'canceled'
  client_secret: string
  customer: string | null
  payment_method: string | null
  last_payment_error: object | null
  next_action: object | null
  setup_future_usage: string | null
  metadata: Record<string, string>
  created: number
  livemode: false
}

export interface StripeRefund {
  id: string
  object: 'refund'
  amount: number
  payment_intent: string
  status: 'pending' | 'succeeded' | 'failed'
  failure_reason: string | null
  metadata: Record<string, string>
  created: number
}

export interface StripeDispute {
  id: string
  object: 'dispute'
  amount: number
  payment_intent: string
  reason: string
  status: 'needs_response' | 'won' | 'lost'
  created: number
}

export interface StripeMethod {
  id: string
  card: TestCard
  wallet: string | null
  customer: string | null
  /** Used without a customer, or detached from one: it cannot be used again. */
  isSpent: boolean
}

export interface StripeCustomer {
  id: string
  object: 'customer'
  metadata: Record<string, string>
  created: number
}

export const methodBody = ({ id, card, wallet, customer }: StripeMethod): object => ({
  id,
  object: 'payment_method',
  type: card.isBank ? 'us_bank_account' : 'card',
  customer,
  ...(!card.isBank && {
    card: {
      brand: card.brand,
      last4: card.last4,
      exp_month: 12,
      exp_year: 2034,
      wallet: wallet === null ? null : { type: wallet },
    },
  }),
})

/** A refusal in Stripe's format. */
export class StripeRefusal extends Error {
  readonly status: number
  readonly body: Record<string, unknown>

  constructor(status: number, body: Record<string, unknown>) {
    super(String(body['message']))
    this.status = status
    this.body = body
  }
}

export const invalid = (message: string, more: { code?: string; param?: string } = {}): StripeRefusal =>
  new StripeRefusal(more.code === 'resource_missing' && more.param === undefined ? 404 : 400, {
    type: 'invalid_request_error',
    message,
    ...more,
  })

export const declined = (intent?: StripeIntent): StripeRefusal =>
  new StripeRefusal(402, { ...cardError, ...(intent && { payment_intent: structuredClone(intent) }) })

export const cardError = {
  type: 'card_error',
  code: 'card_declined',
  decline_code: 'generic_decline',
  message: 'Your card was declined.',
}
