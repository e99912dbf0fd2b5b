import type { Stripe } from 'stripe'
import { METHOD_UNKNOWN, ProcessorUnavailable, type Intent, type IntentRequest } from '../processor.ts'
import type { StripeAccount } from './account.ts'
import { declineCodeOf, orProcessorUnavailable, refusalOf, unavailable } from './errors.ts'

const HOUR_MS = 3_600_000
/** Stripe keeps keys for 24 hours. Long before, a request is no longer repeated: it might be done a second time. */
const KEY_MS = 20 * HOUR_MS
/** What Stripe has done so long ago its search finds, even in its bad hours. */
const SEARCHABLE_MS = 2 * HOUR_MS

/**
 * Creates and confirms an intent under its key. Where the key tells nothing (Stripe repeats an error of its own, or has
 * forgotten the key by now) the intent is looked for by what it is for; a second one is never made, and one that is not
 * there when it would be found was never made.
 */
export async function createIntent(account: StripeAccount, request: IntentRequest): Promise<Intent> {
  const age = account.clock.now() - request.begunAt
  if (age > KEY_MS) return lookUp(account, request, age > KEY_MS + SEARCHABLE_MS)
  try {
    const intent = await account.sdk.paymentIntents.create(await paramsOf(account, request), {
      idempotencyKey: account.keyOf(request.idempotencyKey),
    })
    // What is repeated is how things were then.
    const isReplayed = intent.lastResponse.headers['idempotent-replayed'] === 'true'
    return isReplayed ? await readIntent(account, intent.id) : toIntent(intent)
  } catch (error) {
    if (error instanceof ProcessorUnavailable) throw error
    const refusal = refusalOf(error)
    switch (refusal.kind) {
      case 'declined': {
        const made = refusal.error.payment_intent
        return made ? toIntent(made) : refused(declineCodeOf(refusal.error))
      }
      case 'method-unknown':
        return refused(METHOD_UNKNOWN)
      case 'invalid':
        account.log.error(
          { err: refusal.error, key: request.idempotencyKey },
          'Stripe refuses a payment that it does not understand',
        )
        return refused(null)
      case 'key-spent':
        return lookUp(account, request, age > SEARCHABLE_MS)
      case 'unavailable':
        throw unavailable(refusal.error)
    }
  }
}

/** No intent was made. */
const refused = (declineCode: string | null, status: 'failed' | 'canceled' = 'failed'): Intent => ({
  ref: null,
  status,
  declineCode,
  clientSecret: null,
})

async function paramsOf(
  account: StripeAccount,
  request: IntentRequest,
): Promise<Stripe.PaymentIntentCreateParams> {
  const { amount, currency, customer, saves, metadata } = request
  const method = await methodOf(account, request)
  return {
    amount,
    currency: currency.toLowerCase(),
    // A hub has no page to come back to from a bank's.
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
    metadata: { larder: account.installation, ...asText(metadata) },
    ...(customer !== null && { customer }),
    ...(saves && { setup_future_usage: 'on_session' }),
    ...(method !== null && { payment_method: method, confirm: true }),
  }
}

const asText = (metadata: object): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)]))

/** A wallet's token is made a method first, under a key of its own: the same one, however often. */
async function methodOf(account: StripeAccount, request: IntentRequest): Promise<string | null> {
  if (request.method === null || !request.method.startsWith('tok_')) return request.method
  const { id } = await account.sdk.paymentMethods.create(
    { type: 'card', card: { token: request.method } },
    { idempotencyKey: account.keyOf(`${request.idempotencyKey}:method`) },
  )
  return id
}

/** `isFinal`: what is not found now does not exist. */
async function lookUp(account: StripeAccount, request: IntentRequest, isFinal: boolean): Promise<Intent> {
  const terms = { larder: account.installation, ...asText(request.metadata) }
  const query = Object.entries(terms)
    .map(([name, value]) => `metadata['${name}']:'${value}'`)
    .join(' AND ')
  const { data } = await orProcessorUnavailable(account.sdk.paymentIntents.search({ query, limit: 1 }))
  // The search lags: the intent says itself how it is.
  if (data[0]) return readIntent(account, data[0].id)
  if (isFinal) return refused(null, 'canceled')
  throw new ProcessorUnavailable(`Stripe does not say whether it has made ${request.idempotencyKey}`)
}

export async function readIntent({ sdk }: StripeAccount, ref: string): Promise<Intent> {
  return toIntent(await orProcessorUnavailable(sdk.paymentIntents.retrieve(ref)))
}

/** Its customer has acted in Stripe's form, which completes it as a rule. */
export async function confirmIntent(account: StripeAccount, ref: string): Promise<Intent> {
  const intent = await orProcessorUnavailable(account.sdk.paymentIntents.retrieve(ref))
  if (intent.status !== 'requires_confirmation') return toIntent(intent)
  try {
    const idempotencyKey = account.keyOf(`confirm:${ref}`)
    return toIntent(await account.sdk.paymentIntents.confirm(ref, {}, { idempotencyKey }))
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal.kind === 'declined' || refusal.kind === 'invalid') return readIntent(account, ref)
    if (refusal.kind === 'method-unknown') return readIntent(account, ref)
    throw unavailable(refusal.error)
  }
}

/** One that is finished, or that its bank is at work on, cannot be cancelled: it says itself how it is. */
export async function cancelIntent(account: StripeAccount, ref: string): Promise<Intent> {
  try {
    return toIntent(await account.sdk.paymentIntents.cancel(ref))
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal.kind === 'invalid' || refusal.kind === 'method-unknown') return readIntent(account, ref)
    throw unavailable(refusal.error)
  }
}

/** What the service keeps of an intent. One without a method that never failed waits for its customer. */
export function toIntent(intent: Stripe.PaymentIntent): Intent {
  const { id, client_secret, last_payment_error: failure, payment_method: method } = intent
  return {
    ref: id,
    status: statusOf(intent),
    declineCode: declineCodeOf(failure),
    clientSecret: client_secret,
    method: typeof method === 'string' ? method : (method?.id ?? null),
  }
}

function statusOf({ status, last_payment_error }: Stripe.PaymentIntent): Intent['status'] {
  if (status === 'requires_payment_method') return last_payment_error ? 'failed' : 'requires_action'
  return ended.find((own) => own === status) ?? 'requires_action'
}

const ended = ['succeeded', 'canceled', 'processing'] as const
