import type { Stripe } from 'stripe'
import {
  METHOD_UNKNOWN,
  ProcessorUnavailable,
  type Intent,
  type IntentRequest,
  type ListedMove,
  type ListedRefund,
  paymentOf,
  type MovesPage,
  type PaymentsPage,
  type MovesRequest,
  type MoveStatus,
  type ProcessorRefund,
  type RefundRequest,
} from '../processor.ts'
import {
  declineCodeOf,
  KEY_MS,
  methodOf,
  orProcessorUnavailable,
  refusalOf,
  unavailable,
  type StripeAccount,
} from './account.ts'

/** After this time Stripe's search finds every object, even during an incident. */
const SEARCHABLE_MS = 2 * 3_600_000

/**
 * Creates and confirms an intent under its key. The key does not help if Stripe repeats an internal error of
 * its own or has forgotten the key. Then the intent is searched by its metadata, and a second one is never
 * made. An intent that is missing once the search is reliable was never made.
 */
export async function createIntent(account: StripeAccount, request: IntentRequest): Promise<Intent> {
  const age = account.clock.now() - request.startedAt
  if (age > KEY_MS) return lookUp(account, request, age > KEY_MS + SEARCHABLE_MS)
  try {
    const intent = await account.sdk.paymentIntents.create(await paramsOf(account, request), {
      idempotencyKey: account.keyOf(request.idempotencyKey),
    })
    // A replayed response contains the old status.
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

/**
 * Ensures that a request without an answer never charges the customer. The same key with other parameters
 * makes an intent that waits for a method, and that intent is cancelled. Stripe then refuses any later
 * request under that key. If Stripe refuses these parameters, the first request has arrived: its intent is
 * searched and cancelled.
 */
export async function abandonIntent(account: StripeAccount, request: IntentRequest): Promise<Intent> {
  const age = account.clock.now() - request.startedAt
  if (age > KEY_MS)
    return cancelUnfinished(account, await lookUp(account, request, age > KEY_MS + SEARCHABLE_MS))
  try {
    const { id } = await account.sdk.paymentIntents.create(withoutMethod(account, request), {
      idempotencyKey: account.keyOf(request.idempotencyKey),
    })
    return await cancelIntent(account, id)
  } catch (error) {
    if (error instanceof ProcessorUnavailable) throw error
    const refusal = refusalOf(error)
    switch (refusal.kind) {
      case 'key-spent':
        return cancelUnfinished(account, await lookUp(account, request, age > SEARCHABLE_MS))
      case 'unavailable':
        throw unavailable(refusal.error)
      case 'declined':
      case 'method-unknown':
      case 'invalid':
        return refused(null, 'canceled')
    }
  }
}

const cancelUnfinished = async (account: StripeAccount, intent: Intent): Promise<Intent> =>
  intent.ref !== null && (intent.status === 'requires_action' || intent.status === 'processing')
    ? cancelIntent(account, intent.ref)
    : intent

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
  const { customer, saves } = request
  const method =
    request.method === null ? null : await methodOf(account, { ...request, method: request.method })
  return {
    ...withoutMethod(account, request),
    ...(customer !== null && { customer }),
    ...(saves && { setup_future_usage: 'on_session' }),
    ...(method !== null && { payment_method: method, confirm: true }),
  }
}

const withoutMethod = (
  { installation }: StripeAccount,
  { amount, currency, metadata }: IntentRequest,
): Stripe.PaymentIntentCreateParams => ({
  amount,
  currency: currency.toLowerCase(),
  // A hub has no page to which a bank's page could redirect.
  automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
  metadata: { larder: installation, ...asText(metadata) },
})

const asText = (metadata: object): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)]))

/** `isFinal`: an intent that the search does not find now does not exist. */
async function lookUp(account: StripeAccount, request: IntentRequest, isFinal: boolean): Promise<Intent> {
  const terms = { larder: account.installation, ...asText(request.metadata) }
  const query = Object.entries(terms)
    .map(([name, value]) => `metadata['${name}']:'${value}'`)
    .join(' AND ')
  const { data } = await orProcessorUnavailable(account.sdk.paymentIntents.search({ query, limit: 1 }))
  // The search lags, so the status is read from the intent itself.
  if (data[0]) return readIntent(account, data[0].id)
  if (isFinal) return refused(null, 'canceled')
  throw new ProcessorUnavailable(`Stripe does not say whether it has made ${request.idempotencyKey}`)
}

export async function readIntent({ sdk }: StripeAccount, ref: string): Promise<Intent> {
  return toIntent(await orProcessorUnavailable(sdk.paymentIntents.retrieve(ref)))
}

/** The customer has acted in Stripe's form, which usually completes the intent. */
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

/**
 * Cancels an intent. If it is finished or its bank is processing it, it cannot be cancelled, and its current
 * status is returned.
 */
export async function cancelIntent(account: StripeAccount, ref: string): Promise<Intent> {
  try {
    return toIntent(await account.sdk.paymentIntents.cancel(ref))
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal.kind === 'invalid' || refusal.kind === 'method-unknown') return readIntent(account, ref)
    throw unavailable(refusal.error)
  }
}

/**
 * Converts an intent to the fields that the service stores. An intent without a method and without a failure
 * waits for its customer.
 */
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

/** An unknown status is not final: the intent is read again. */
function statusOf({ status, last_payment_error }: Stripe.PaymentIntent): Intent['status'] {
  if (status === 'requires_payment_method') return last_payment_error ? 'failed' : 'requires_action'
  return intentStatuses.get(status) ?? 'processing'
}

const intentStatuses: ReadonlyMap<string, Intent['status']> = new Map([
  ['succeeded', 'succeeded'],
  ['canceled', 'canceled'],
  ['processing', 'processing'],
  ['requires_action', 'requires_action'],
  ['requires_confirmation', 'requires_action'],
  // Larder never asks for a later capture: a payment that is only authorised is cancelled in time.
  ['requires_capture', 'requires_action'],
])

/** No payment has more refunds: each returns at least a cent, and each line is refunded at most once. */
const MOST = 1000

/**
 * Refunds money under the request's key. If the key may be forgotten or spent, the refund is made only if it
 * does not exist yet.
 */
export async function createRefund(account: StripeAccount, request: RefundRequest): Promise<ProcessorRefund> {
  const isOld = account.clock.now() - request.startedAt > KEY_MS
  const known = isOld ? await find(account, request) : undefined
  if (known) return known
  try {
    const { refund_id, order_id } = request.metadata
    const refund = await account.sdk.refunds.create(
      {
        payment_intent: request.ref,
        amount: request.amount,
        metadata: {
          larder: account.installation,
          refund_id,
          order_id: String(order_id),
        },
      },
      { idempotencyKey: account.keyOf(isOld ? `${request.idempotencyKey}:again` : request.idempotencyKey) },
    )
    // A replayed response contains the old status.
    const isReplayed = refund.lastResponse.headers['idempotent-replayed'] === 'true'
    return isReplayed ? await readRefund(account, refund.id) : toRefund(refund)
  } catch (error) {
    const refusal = refusalOf(error)
    switch (refusal.kind) {
      case 'declined':
      case 'invalid':
        return { ref: null, status: 'failed', failureReason: refusal.error.code ?? 'refused' }
      case 'method-unknown':
        return { ref: null, status: 'failed', failureReason: 'payment_method_unexpected_state' }
      case 'key-spent': {
        const made = await find(account, request)
        if (made) return made
        throw unavailable(refusal.error)
      }
      case 'unavailable':
        throw unavailable(refusal.error)
    }
  }
}

/** Searches all refunds of the payment; this list never lags. */
async function find(
  account: StripeAccount,
  { ref, metadata }: RefundRequest,
): Promise<ProcessorRefund | undefined> {
  return (await listRefunds(account, ref)).find(({ identity }) => identity === metadata.refund_id)
}

export async function listRefunds(
  { sdk, installation }: StripeAccount,
  ref: string,
): Promise<ListedRefund[]> {
  const made = await orProcessorUnavailable(
    sdk.refunds.list({ payment_intent: ref, limit: 100 }).autoPagingToArray({ limit: MOST }),
  )
  return made.map((refund) => toListedRefund(installation, refund))
}

/** Includes moves of other installations that share the account: a dispute does not name its installation. */
export async function listMoves(
  { sdk, installation }: StripeAccount,
  { kind, since, after, limit }: MovesRequest,
): Promise<MovesPage> {
  const params = {
    created: { gte: Math.floor(since / 1000) },
    limit,
    ...(after !== null && { starting_after: after }),
  }
  const { data, has_more } = await orProcessorUnavailable<Stripe.ApiList<Stripe.Refund | Stripe.Dispute>>(
    kind === 'refund' ? sdk.refunds.list(params) : sdk.disputes.list(params),
  )
  return {
    moves: data.flatMap((object): ListedMove[] => {
      const intent = idOf(object.payment_intent)
      const made = object.object === 'refund' ? toListedRefund(installation, object) : toListedDispute(object)
      return intent === null || made === undefined ? [] : [{ ...made, intent }]
    }),
    next: has_more ? (data.at(-1)?.id ?? null) : null,
  }
}

/** Payments of other installations that share the account are left out. */
export async function listPayments(
  { sdk, installation }: StripeAccount,
  { since, after, limit }: Omit<MovesRequest, 'kind'>,
): Promise<PaymentsPage> {
  const { data, has_more } = await orProcessorUnavailable(
    sdk.paymentIntents.list({
      created: { gte: Math.floor(since / 1000) },
      limit,
      ...(after !== null && { starting_after: after }),
    }),
  )
  return {
    payments: data.flatMap((intent) => {
      const { id, amount, created, metadata } = intent
      const own = metadata['larder'] === installation ? paymentOf(metadata) : undefined
      return own ? [{ ...own, ref: id, amount, status: statusOf(intent), createdAt: created * 1000 }] : []
    }),
    next: has_more ? (data.at(-1)?.id ?? null) : null,
  }
}

const toListedRefund = (installation: string, refund: Stripe.Refund): ListedRefund => ({
  ...toRefund(refund),
  ref: refund.id,
  amount: refund.amount,
  identity: refund.metadata?.['larder'] === installation ? refund.metadata['refund_id'] : undefined,
})

function toListedDispute({
  id,
  amount,
  status,
  reason,
}: Stripe.Dispute): Omit<ListedMove, 'intent'> | undefined {
  const own = disputeStatus(status)
  if (own === 'inquiry') return undefined
  const failureReason = own === 'unknown' ? unknownStatus(status) : reason
  return { ref: id, amount, status: own, failureReason, identity: undefined }
}

/**
 * Whether the bank has the money of a dispute. An inquiry (`warning_*`) moves no money. An appeal follows a
 * lost dispute. The bank itself has refunded a prevented dispute: the money is gone until the dispute is won.
 */
export function disputeStatus(status: string | null | undefined): MoveStatus | 'inquiry' {
  if (status?.startsWith('warning_')) return 'inquiry'
  if (status?.startsWith('appeal_')) return 'succeeded'
  return disputeStatuses.get(status ?? '') ?? 'unknown'
}

const disputeStatuses: ReadonlyMap<string, MoveStatus> = new Map([
  ['needs_response', 'succeeded'],
  ['under_review', 'succeeded'],
  ['lost', 'succeeded'],
  ['prevented', 'succeeded'],
  ['won', 'failed'],
])

/** The text that people read for an unknown status. */
export const unknownStatus = (status: string | null | undefined): string =>
  `the processor's status is "${(status ?? '').slice(0, 64)}"`

export const idOf = (reference: string | { id: string } | null | undefined): string | null =>
  (typeof reference === 'string' ? reference : reference?.id) ?? null

export async function readRefund({ sdk }: StripeAccount, ref: string): Promise<ProcessorRefund> {
  return toRefund(await orProcessorUnavailable(sdk.refunds.retrieve(ref)))
}

export const toRefund = ({ id, status, failure_reason }: Stripe.Refund): ProcessorRefund => ({
  ref: id,
  status: refundStatus(status),
  failureReason: failure_reason ?? (status === 'canceled' ? 'canceled' : null),
})

/** `requires_action`: the recipient must name a destination. */
export function refundStatus(status: string | null | undefined): ProcessorRefund['status'] {
  if (status === 'succeeded') return 'succeeded'
  return status === 'failed' || status === 'canceled' ? 'failed' : 'pending'
}
