import { cardOfToken, testCards } from './cards.ts'
import {
  cardError,
  declined,
  invalid,
  methodBody,
  type StripeCustomer,
  type StripeDispute,
  type StripeIntent,
  type StripeMethod,
  type StripeRefund,
} from './objects.ts'
import { textOf, type Params } from './params.ts'

/** Maximum delay of Stripe's search. */
const SEARCH_LAG_S = 3600

export interface StripeEvent {
  id: string
  body: string
}

/** An account at Stripe, which follows the documented rules of the calls that the service makes. */
export class StripeBooks {
  readonly intents = new Map<string, StripeIntent>()
  readonly refunds = new Map<string, StripeRefund>()
  /** By intent. */
  readonly disputes = new Map<string, StripeDispute>()
  readonly methods = new Map<string, StripeMethod>()
  readonly customers = new Map<string, StripeCustomer>()
  /** Events that the webhook will deliver, oldest first. */
  readonly events: StripeEvent[] = []
  #ids = 0
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  id(prefix: string): string {
    return `${prefix}_${(this.#ids += 1).toString(36).padStart(12, 'L')}`
  }

  get #seconds(): number {
    return Math.floor(this.#now() / 1000)
  }

  createIntent(params: Params): StripeIntent {
    const amount = integer(params, 'amount')
    if (amount < 50)
      throw invalid('Amount must be at least 50 cents.', { code: 'amount_too_small', param: 'amount' })
    const currency = textOf(params, 'currency')
    if (!/^[a-z]{3}$/.test(currency)) throw invalid(`Invalid currency: ${currency}`, { param: 'currency' })
    const customer = text(params, 'customer')
    if (customer !== null) this.#customer(customer)
    const id = this.id('pi')
    const intent: StripeIntent = {
      id,
      object: 'payment_intent',
      amount,
      currency,
      status: 'requires_payment_method',
      client_secret: `${id}_secret_${this.id('s')}`,
      customer,
      payment_method: null,
      last_payment_error: null,
      next_action: null,
      setup_future_usage: text(params, 'setup_future_usage'),
      metadata: metadata(params),
      created: this.#seconds,
      livemode: false,
    }
    if (params['confirm'] !== 'true') return this.#put(intent)
    const automatic = params['automatic_payment_methods'] as Params | undefined
    if (automatic?.['allow_redirects'] !== 'never')
      throw invalid('A return_url is required.', { param: 'return_url' })
    const method = this.#usableMethod(text(params, 'payment_method'), customer)
    intent.payment_method = method.id
    return this.#charge(this.#put(intent), method)
  }

  #charge(intent: StripeIntent, method: StripeMethod): StripeIntent {
    switch (method.card.outcome) {
      case 'succeeds':
        this.succeed(intent)
        return intent
      case 'processing':
        intent.status = 'processing'
        this.tell('payment_intent.processing', intent)
        return intent
      case 'requires-action':
        intent.status = 'requires_action'
        intent.next_action = { type: 'use_stripe_sdk' }
        this.tell('payment_intent.requires_action', intent)
        return intent
      case 'declined':
        this.fail(intent)
        throw declined(intent)
    }
  }

  succeed(intent: StripeIntent): void {
    Object.assign(intent, { status: 'succeeded', next_action: null, last_payment_error: null })
    const method = this.methods.get(intent.payment_method ?? '')
    if (method && method.customer === null) {
      if (intent.setup_future_usage !== null && intent.customer !== null) method.customer = intent.customer
      else method.isSpent = true
    }
    this.tell('payment_intent.succeeded', intent)
  }

  /** The attempt failed; the customer may try another method in Stripe's form. */
  fail(intent: StripeIntent): void {
    Object.assign(intent, {
      status: 'requires_payment_method',
      next_action: null,
      last_payment_error: { ...cardError },
      payment_method: null,
    })
    this.tell('payment_intent.payment_failed', intent)
  }

  cancelIntent(id: string): StripeIntent {
    const intent = this.intent(id)
    if (!['requires_payment_method', 'requires_action'].includes(intent.status))
      throw invalid(`You cannot cancel this PaymentIntent because it has a status of ${intent.status}.`, {
        code: 'payment_intent_unexpected_state',
      })
    Object.assign(intent, { status: 'canceled', next_action: null })
    this.tell('payment_intent.canceled', intent)
    return intent
  }

  intent(id: string): StripeIntent {
    const intent = this.intents.get(id)
    if (!intent)
      throw invalid(`No such payment_intent: '${id}'`, { code: 'resource_missing', param: 'intent' })
    return intent
  }

  /** Only sufficiently old objects are in the search index. */
  search<T extends { metadata: Record<string, string>; created: number }>(
    objects: Iterable<T>,
    query: string,
  ): T[] {
    const terms = query.split(' AND ').map((term) => {
      const [, name, value] = /^metadata\['(\w+)'\]:'([^']*)'$/.exec(term) ?? []
      if (name === undefined) throw invalid(`Cannot parse the query: ${term}`, { param: 'query' })
      return [name, value] as const
    })
    return [...objects].filter(
      (object) =>
        object.created + SEARCH_LAG_S <= this.#seconds &&
        terms.every(([name, value]) => object.metadata[name] === value),
    )
  }

  createRefund(params: Params): StripeRefund {
    const intent = this.intent(textOf(params, 'payment_intent'))
    const amount = integer(params, 'amount')
    if (intent.status !== 'succeeded')
      throw invalid('This PaymentIntent does not have a successful charge to refund.')
    const left = intent.amount - this.refunded(intent.id)
    if (left === 0)
      throw invalid('The charge has already been refunded.', { code: 'charge_already_refunded' })
    if (amount < 1 || amount > left)
      throw invalid(`Refund amount is greater than unrefunded amount.`, { param: 'amount' })
    const how = this.methods.get(intent.payment_method ?? '')?.card.refund
    if (['needs_response', 'lost'].includes(this.disputes.get(intent.id)?.status ?? ''))
      throw invalid('This charge has been charged back.', { code: 'charge_disputed' })
    const refund: StripeRefund = {
      id: this.id('re'),
      object: 'refund',
      amount,
      payment_intent: intent.id,
      status: how === 'pending' ? 'pending' : how === 'refused' ? 'failed' : 'succeeded',
      failure_reason: how === 'refused' ? 'lost_or_stolen_card' : null,
      metadata: metadata(params),
      created: this.#seconds,
    }
    this.refunds.set(refund.id, refund)
    this.tell('refund.created', refund)
    return refund
  }

  /** A cardholder's bank opens a dispute. */
  dispute(intentId: string): void {
    const intent = this.intent(intentId)
    const dispute: StripeDispute = {
      id: this.id('dp'),
      object: 'dispute',
      amount: intent.amount - this.refunded(intentId),
      payment_intent: intentId,
      reason: 'fraudulent',
      status: 'needs_response',
      created: this.#seconds,
    }
    this.disputes.set(intentId, dispute)
    this.tell('charge.dispute.created', dispute)
    this.tell('charge.dispute.funds_withdrawn', dispute)
  }

  endDispute(intentId: string, end: 'won' | 'lost'): void {
    const dispute = this.disputes.get(intentId)!
    dispute.status = end
    if (end === 'won') this.tell('charge.dispute.funds_reinstated', dispute)
    this.tell('charge.dispute.closed', dispute)
  }

  /** Cents that are refunded or about to be. */
  refunded(intentId: string): number {
    return [...this.refunds.values()]
      .filter(({ payment_intent, status }) => payment_intent === intentId && status !== 'failed')
      .reduce((sum, { amount }) => sum + amount, 0)
  }

  /** Completes slow work of Stripe and the banks: payments succeed, refunds succeed or are returned. */
  settle(): void {
    for (const intent of this.intents.values()) if (intent.status === 'processing') this.succeed(intent)
    for (const refund of this.refunds.values()) {
      const intent = this.intents.get(refund.payment_intent)
      const how = this.methods.get(intent?.payment_method ?? '')?.card.refund
      if (refund.status === 'pending') {
        refund.status = 'succeeded'
        this.tell('refund.updated', refund)
      } else if (how === 'fails-later' && refund.status === 'succeeded')
        this.failRefund(refund, 'lost_or_stolen_card')
    }
  }

  failRefund(refund: StripeRefund, reason: string): void {
    Object.assign(refund, { status: 'failed', failure_reason: reason })
    this.tell('refund.failed', refund)
  }

  createCustomer(params: Params): StripeCustomer {
    const customer = {
      id: this.id('cus'),
      object: 'customer',
      metadata: metadata(params),
      created: this.#seconds,
    } as const
    this.customers.set(customer.id, customer)
    return customer
  }

  removeCustomer(id: string): object {
    this.#customer(id)
    this.customers.delete(id)
    for (const method of this.methods.values())
      if (method.customer === id) Object.assign(method, { customer: null, isSpent: true })
    return { id, object: 'customer', deleted: true }
  }

  createSetupIntent(params: Params): object {
    this.#customer(textOf(params, 'customer'))
    const id = this.id('seti')
    return {
      id,
      object: 'setup_intent',
      client_secret: `${id}_secret_${this.id('s')}`,
      status: 'requires_payment_method',
      customer: params['customer'],
    }
  }

  createMethod(params: Params): object {
    const { token } = params['card'] as { token: string }
    const card = cardOfToken(token)
    if (!card) throw invalid(`No such token: '${token}'`, { code: 'resource_missing', param: 'card[token]' })
    // A real token knows its wallet; the test tokens contain it in their names.
    return methodBody(this.newMethod(card, token.startsWith('tok_platform_b_') ? 'google_pay' : 'apple_pay'))
  }

  /** A method as Stripe's form creates it. */
  newMethod(card: StripeMethod['card'], wallet: string | null = null): StripeMethod {
    const method = { id: this.id('pm'), card, wallet, customer: null, isSpent: false }
    this.methods.set(method.id, method)
    return method
  }

  /** Each use of a test token creates its own method. */
  method(id: string): StripeMethod {
    const card = testCards[id]
    const method = card ? this.newMethod(card) : this.methods.get(id)
    if (!method)
      throw invalid(`No such PaymentMethod: '${id}'`, { code: 'resource_missing', param: 'payment_method' })
    return method
  }

  #usableMethod(id: string | null, customer: string | null): StripeMethod {
    const method = this.method(id ?? '')
    if (method.isSpent)
      throw invalid('This PaymentMethod was previously used or detached, and may not be used again.', {
        code: 'payment_method_unexpected_state',
      })
    if (method.customer !== null && method.customer !== customer)
      throw invalid('The PaymentMethod does not belong to this customer.', { param: 'payment_method' })
    return method
  }

  attach(id: string, params: Params): object {
    const customer = textOf(params, 'customer')
    this.#customer(customer)
    const method = this.#usableMethod(id, customer)
    if (method.card.refusesAttach) throw declined()
    method.customer = customer
    return methodBody(method)
  }

  detach(id: string): object {
    const method = this.method(id)
    if (method.customer === null)
      throw invalid('The payment method you provided is not attached to a customer.')
    Object.assign(method, { customer: null, isSpent: true })
    return methodBody(method)
  }

  #customer(id: string): void {
    if (!this.customers.has(id))
      throw invalid(`No such customer: '${id}'`, { code: 'resource_missing', param: 'customer' })
  }

  #put(intent: StripeIntent): StripeIntent {
    this.intents.set(intent.id, intent)
    return intent
  }

  tell(type: string, object: object): void {
    const id = this.id('evt')
    const created = this.#seconds
    const event = { id, object: 'event', type, created, livemode: false, data: { object } }
    this.events.push({ id, body: JSON.stringify(event) })
  }
}

function integer(params: Params, name: string): number {
  const value = textOf(params, name)
  if (!/^\d+$/.test(value))
    throw invalid(`Invalid integer: ${value}`, { code: 'parameter_invalid_integer', param: name })
  return Number(value)
}

const text = (params: Params, name: string): string | null =>
  params[name] === undefined ? null : textOf(params, name)

const metadata = (params: Params): Record<string, string> =>
  (params['metadata'] as Record<string, string> | undefined) ?? {}
