import type { Stripe } from 'stripe'
import { SetupIntentSecret } from '../../../../protocol/contract/consumer-payments.ts'
import {
  MethodRefused,
  type AttachRequest,
  type CustomerRequest,
  type MethodDetails,
  type SetupIntent,
} from '../processor.ts'
import {
  declineCodeOf,
  KEY_MS,
  methodOf,
  isMissing,
  orProcessorUnavailable,
  refusalOf,
  unavailable,
  type StripeAccount,
} from './account.ts'

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
