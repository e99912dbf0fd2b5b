import {
  DISPUTE_EVENT,
  leastAmount,
  type CardProcessor,
  MethodRefused,
  type AttachRequest,
  type CustomerRequest,
  type MethodDetails,
  type SetupIntent,
} from '../processor.ts'
import {
  openAccount,
  declineCodeOf,
  type StripeOptions,
  KEY_MS,
  methodOf,
  isMissing,
  orProcessorUnavailable,
  refusalOf,
  unavailable,
  type StripeAccount,
} from './account.ts'
import {
  abandonIntent,
  cancelIntent,
  confirmIntent,
  createIntent,
  readIntent,
  createRefund,
  disputeStatus,
  listMoves,
  listPayments,
  listRefunds,
  idOf,
  readRefund,
  refundStatus,
  unknownStatus,
} from './money.ts'
import { z } from 'zod'
import { optional } from '../../../platform/tolerant.ts'
import type { Stripe } from 'stripe'
import { SetupIntentSecret } from '../../../../protocol/contract/consumer-payments.ts'

/**
 * Stripe, through its own SDK. Intents are confirmed on creation, with the customer present; redirects to
 * banks' pages are off. The metadata of each object carries the installation's name and our ids.
 */
export function createStripe(options: StripeOptions): CardProcessor {
  const account = openAccount(options)
  return {
    name: 'stripe',
    leastAmount,
    // The id of a method; wallets may also give a token.
    knowsMethod: (method, type) => (type === 'card' ? /^(pm|card)_\w+$/ : /^(pm|tok)_\w+$/).test(method),
    savesMethod: (method) => /^(pm|card|tok)_\w+$/.test(method),
    createIntent: (request) => createIntent(account, request),
    readIntent: (ref) => readIntent(account, ref),
    confirmIntent: (ref) => confirmIntent(account, ref),
    cancelIntent: (ref) => cancelIntent(account, ref),
    abandonIntent: (request) => abandonIntent(account, request),
    createRefund: (request) => createRefund(account, request),
    readRefund: (ref) => readRefund(account, ref),
    listRefunds: (ref) => listRefunds(account, ref),
    listMoves: (request) => listMoves(account, request),
    listPayments: (request) => listPayments(account, request),
    createCustomer: (request) => createCustomer(account, request),
    removeCustomer: (ref) => removeCustomer(account, ref),
    createSetupIntent: (request) => createSetupIntent(account, request),
    attachMethod: (request) => attachMethod(account, request),
    detachMethod: ({ method }) => detachMethod(account, method),
    readEvent: (body) => readEvent(account.installation, body),
  }
}

const Head = z.object({ id: z.string(), type: z.string() })

const Reference = optional(z.union([z.string(), z.object({ id: z.string() })]))

/** The fields that are read from relevant events. */
const MoneyEvent = Head.extend({
  data: z.object({
    object: z.object({
      id: z.string(),
      status: optional(z.string()),
      client_secret: optional(z.string()),
      payment_method: Reference,
      last_payment_error: optional(
        z.object({ decline_code: optional(z.string()), code: optional(z.string()) }),
      ),
      amount: optional(z.int()),
      payment_intent: Reference,
      /** For disputes only. */
      reason: optional(z.string()),
      failure_reason: optional(z.string()),
      metadata: optional(z.record(z.string(), z.unknown())),
    }),
  }),
})

const refundTypes: readonly string[] = [
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.refund.updated',
]

/**
 * Converts an event to the service's format. For irrelevant events only the name is stored. A body that is no
 * event is returned unchanged.
 */
export function readEvent(installation: string, body: unknown): unknown {
  const head = Head.safeParse(body)
  if (!head.success) return body
  const { id, type } = head.data
  const isRefund = refundTypes.includes(type)
  const isDispute = type.startsWith('charge.dispute.')
  if (!isRefund && !isDispute && !type.startsWith('payment_intent.'))
    return { id, type, data: { object: { id } } }
  const event = MoneyEvent.safeParse(body)
  if (!event.success) return body
  const { object } = event.data.data
  if (isDispute) {
    const status = disputeStatus(object.status)
    return {
      id,
      type: DISPUTE_EVENT,
      data: {
        object: {
          id: object.id,
          status,
          amount: object.amount,
          payment_intent: idOf(object.payment_intent),
          failure_reason: status === 'unknown' ? unknownStatus(object.status) : object.reason,
        },
      },
    }
  }
  return {
    id,
    // The refund's status contains whether it failed.
    type: isRefund ? 'refund.updated' : type,
    data: {
      object: {
        id: object.id,
        status: isRefund ? refundStatus(object.status) : object.status,
        client_secret: object.client_secret,
        payment_method: idOf(object.payment_method),
        amount: object.amount,
        payment_intent: idOf(object.payment_intent),
        decline_code: declineCodeOf(object.last_payment_error),
        failure_reason: object.failure_reason ?? (object.status === 'canceled' ? 'canceled' : null),
        metadata: metadataOf(installation, object.metadata ?? {}),
      },
    },
  }
}

const names = ['payment_id', 'deposit_id', 'refund_id'] as const

/** Ignores the metadata of other installations' objects: their payment 1 is another payment. */
function metadataOf(installation: string, metadata: Record<string, unknown>): Record<string, string> {
  if (metadata['larder'] !== installation) return {}
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = metadata[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}

/**
 * Creates a customer, never twice: if the key may be forgotten, it searches for the customer first. Stripe
 * receives the user's number, and no name, address or telephone number.
 */
export async function createCustomer(
  { sdk, installation, clock, keyOf }: StripeAccount,
  { idempotencyKey, startedAt, userId }: CustomerRequest,
): Promise<string> {
  const metadata = { larder: installation, customer: idempotencyKey, user_id: String(userId) }
  if (clock.now() - startedAt > KEY_MS) {
    const query = `metadata['larder']:'${installation}' AND metadata['customer']:'${idempotencyKey}'`
    const { data } = await orProcessorUnavailable(sdk.customers.search({ query, limit: 1 }))
    if (data[0]) return data[0].id
  }
  const { id } = await orProcessorUnavailable(
    sdk.customers.create({ metadata }, { idempotencyKey: keyOf(idempotencyKey) }),
  )
  return id
}

export async function removeCustomer({ sdk }: StripeAccount, ref: string): Promise<void> {
  await unlessMissing(sdk.customers.del(ref))
}

export async function createSetupIntent(
  { sdk, installation, keyOf }: StripeAccount,
  { idempotencyKey, customer }: { idempotencyKey: string; customer: string },
): Promise<SetupIntent> {
  const { id, client_secret, status } = await orProcessorUnavailable(
    sdk.setupIntents.create(
      {
        customer,
        automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
        usage: 'on_session',
        metadata: { larder: installation },
      },
      { idempotencyKey: keyOf(idempotencyKey) },
    ),
  )
  // An unknown status leaves the next step to the processor's own form.
  const own = SetupIntentSecret.shape.status.catch('requires_payment_method').parse(status)
  return { ref: id, clientSecret: client_secret!, status: own }
}

/** Saves a card, plain or in a wallet: other methods cannot be saved. */
export async function attachMethod(account: StripeAccount, request: AttachRequest): Promise<MethodDetails> {
  const { sdk, keyOf } = account
  const { idempotencyKey, customer } = request
  try {
    const method = await methodOf(account, request)
    const given = await sdk.paymentMethods.retrieve(method)
    if (given.type !== 'card') throw new MethodRefused(null)
    return detailsOf(
      // Under one key a test token represents one card.
      await sdk.paymentMethods.attach(method, { customer }, { idempotencyKey: keyOf(idempotencyKey) }),
    )
  } catch (error) {
    if (error instanceof MethodRefused) throw error
    const refusal = refusalOf(error)
    switch (refusal.kind) {
      case 'declined':
        throw new MethodRefused(declineCodeOf(refusal.error))
      case 'method-unknown':
      case 'invalid':
        throw new MethodRefused(null)
      case 'key-spent':
      case 'unavailable':
        throw unavailable(refusal.error)
    }
  }
}

export async function detachMethod({ sdk }: StripeAccount, method: string): Promise<void> {
  await unlessMissing(sdk.paymentMethods.detach(method))
}

async function unlessMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (isMissing(error)) return
    await orProcessorUnavailable(Promise.reject(error as Error))
  }
}

function detailsOf({ id, card }: Stripe.PaymentMethod): MethodDetails {
  if (!card) throw new MethodRefused(null)
  return {
    ref: id,
    type: typeOf(card.wallet?.type),
    brand: card.brand,
    last4: card.last4,
    expMonth: card.exp_month,
    expYear: card.exp_year,
  }
}

function typeOf(wallet: string | undefined): MethodDetails['type'] {
  if (wallet === 'apple_pay') return 'platform_a'
  return wallet === 'google_pay' ? 'platform_b' : 'card'
}
