import { Stripe } from 'stripe'
import { addressOf } from '../../../../protocol/model/address.ts'
import type { Clock, Runtime } from '../../../../protocol/model/runtime.ts'
import type { Log } from '../../../../protocol/model/log.ts'
import { randomHex } from '../../../../protocol/model/ids.ts'
import type { CloudDatabase } from '../../../platform/store/database.ts'
import { ProcessorUnavailable } from '../processor.ts'

/** Stripe keeps keys for 24 hours. Long before, a request is no longer repeated: it might be done a second time. */
export const KEY_MS = 20 * 3_600_000

export interface StripeOptions {
  apiKey: string
  /** Of the API; an http(s) origin. */
  url?: string
  /** Tells this installation's objects from those of others that share the account (`readInstallation`). */
  installation: string
  clock: Clock
  log: Log
  timeoutMs: number
  /** How often the SDK repeats a call that got no answer, before it gives up. */
  retries?: number
}

/** An account at Stripe, as the parts of this folder share it. */
export interface StripeAccount {
  sdk: Stripe
  installation: string
  clock: Clock
  log: Log
  /** An idempotency key of this installation's own: row 1 of another database is another payment. */
  keyOf: (key: string) => string
}

export function openAccount(options: StripeOptions): StripeAccount {
  const { apiKey, url = 'https://api.stripe.com', installation, clock, log, timeoutMs, retries = 1 } = options
  const { protocol, host, port } = addressOf(url, { 'http:': 80, 'https:': 443 })
  const sdk = new Stripe(apiKey, {
    protocol: protocol === 'http:' ? 'http' : 'https',
    host,
    port,
    timeout: timeoutMs,
    maxNetworkRetries: retries,
    telemetry: false,
    appInfo: { name: 'larder' },
  })
  return { sdk, installation, clock, log, keyOf: (key) => `${installation}:${key}` }
}

/**
 * The name of this installation, made once with its database. Several may share an account at a processor (a test
 * installation is begun anew; a second one serves another country), and all of them have a payment 1.
 */
export async function readInstallation(
  { kysely: q }: CloudDatabase,
  { random }: Pick<Runtime, 'random'>,
): Promise<string> {
  await q
    .insertInto('installation')
    .values({ id: 1, name: randomHex(random, 8) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { name } = await q
    .selectFrom('installation')
    .select('name')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return name
}

const { StripeError, StripeCardError, StripeIdempotencyError, StripeInvalidRequestError } = Stripe.errors
type StripeError = InstanceType<typeof StripeError>
type CardError = InstanceType<typeof StripeCardError>

/** What an error of a call means. Errors that are not Stripe's are defects and pass. */
export type Refusal =
  /** The card's issuer said no. */
  | { kind: 'declined'; error: CardError }
  /** There is no such method, or it is another customer's. */
  | { kind: 'method-unknown' }
  /** Whatever else is wrong with the request: the same request will not succeed. */
  | { kind: 'invalid'; error: StripeError }
  /** The key has been used for another request, or is spent on an error of Stripe's own that it repeats. */
  | { kind: 'key-spent'; error: StripeError }
  /** Nobody knows whether it was done. */
  | { kind: 'unavailable'; error: StripeError }

const methodCodes: readonly unknown[] = [
  'payment_method_unexpected_state',
  'token_already_used',
  'token_in_use',
  'payment_method_unactivated',
]
const methodParams: readonly unknown[] = ['payment_method', 'card[token]']

export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof StripeError)) throw error
  if (error instanceof StripeCardError) return { kind: 'declined', error }
  if (error instanceof StripeIdempotencyError) return { kind: 'key-spent', error }
  if (error instanceof StripeInvalidRequestError)
    return methodCodes.includes(error.code) || methodParams.includes(error.param)
      ? { kind: 'method-unknown' }
      : { kind: 'invalid', error }
  const isStored = (error.statusCode ?? 0) >= 500 && error.headers?.['idempotent-replayed'] === 'true'
  return { kind: isStored ? 'key-spent' : 'unavailable', error }
}

/** A wallet's token is made a method first, under a key of its own: the same one, however often. */
export async function methodOf(
  { sdk, keyOf }: StripeAccount,
  { idempotencyKey, method }: { idempotencyKey: string; method: string },
): Promise<string> {
  if (!method.startsWith('tok_')) return method
  const { id } = await sdk.paymentMethods.create(
    { type: 'card', card: { token: method } },
    { idempotencyKey: keyOf(`${idempotencyKey}:method`) },
  )
  return id
}

/** Of calls that can only succeed or be repeated: whatever went wrong, they are. */
export async function orProcessorUnavailable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StripeError) throw unavailable(error)
    throw error
  }
}

/** Without what Stripe says of the request: that is for the log of whoever asks. */
export const unavailable = (error: StripeError): ProcessorUnavailable =>
  new ProcessorUnavailable(`Stripe: ${error.type} ${error.code ?? ''} ${error.message}`.trim(), {
    cause: error,
  })

/** Whether Stripe says that what is to be gone is not there. */
export const isMissing = (error: unknown): boolean => error instanceof StripeInvalidRequestError

/** The issuer's word; Stripe's where the issuer gave none. */
export const declineCodeOf = (
  error: { decline_code?: string | null | undefined; code?: string | null | undefined } | null | undefined,
): string | null => error?.decline_code || error?.code || null
