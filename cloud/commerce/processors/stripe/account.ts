import { Stripe } from 'stripe'
import { PRODUCT_VERSION } from '../../../../protocol/build.ts'
import { addressOf } from '../../../../protocol/model/address.ts'
import type { Clock, Runtime } from '../../../../protocol/model/runtime.ts'
import type { Log } from '../../../../protocol/model/log.ts'
import { randomHex } from '../../../../protocol/model/ids.ts'
import type { CloudDatabase } from '../../../platform/store/database.ts'
import { ProcessorUnavailable } from '../processor.ts'

/**
 * Stripe stores keys for 24 hours. Requests stop being repeated 4 hours earlier: a request with a forgotten
 * key might be executed twice.
 */
export const KEY_MS = 20 * 3_600_000

export interface StripeOptions {
  apiKey: string
  /** The API's origin (http or https). */
  url?: string
  /** Distinguishes this installation's objects from others in a shared account (`readInstallation`). */
  installation: string
  clock: Clock
  log: Log
  timeoutMs: number
  /** Number of times that the SDK repeats a call without an answer. */
  retries?: number
}

/** A Stripe account, shared by the files of this folder. */
export interface StripeAccount {
  sdk: Stripe
  installation: string
  clock: Clock
  log: Log
  /** Makes an idempotency key unique to this installation: row 1 of another database is another payment. */
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
    appInfo: { name: 'larder', version: PRODUCT_VERSION },
  })
  return { sdk, installation, clock, log, keyOf: (key) => `${installation}:${key}` }
}

/**
 * The name of this installation, made once with its database. Several installations may share an account at a
 * processor, and each has a payment 1. Examples: a test installation that was recreated, or a second one for
 * another country.
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

/** The meaning of a failed call. Errors that do not come from Stripe are defects and are rethrown. */
export type Refusal =
  /** The card's issuer declined. */
  | { kind: 'declined'; error: CardError }
  /** The method does not exist, or belongs to another customer. */
  | { kind: 'method-unknown' }
  /** Any other fault of the request: the same request will not succeed. */
  | { kind: 'invalid'; error: StripeError }
  /**
   * The key was used for another request, or Stripe stored an internal error of its own under it and repeats
   * that.
   */
  | { kind: 'key-spent'; error: StripeError }
  /** It is unknown whether the request was executed. */
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

/** Converts a wallet token to a method first, under a key of its own: every call returns the same method. */
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

/** For calls that can only succeed or be repeated: every error leads to a repetition. */
export async function orProcessorUnavailable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StripeError) throw unavailable(error)
    throw error
  }
}

/** Omits Stripe's description of the request, which belongs in the caller's log. */
export const unavailable = (error: StripeError): ProcessorUnavailable =>
  new ProcessorUnavailable(`Stripe: ${error.type} ${error.code ?? ''} ${error.message}`.trim(), {
    cause: error,
  })

/** Whether Stripe reports that the object to delete is missing. */
export const isMissing = (error: unknown): boolean => error instanceof StripeInvalidRequestError

/** The issuer's decline code, or Stripe's if the issuer gave none. */
export const declineCodeOf = (
  error: { decline_code?: string | null | undefined; code?: string | null | undefined } | null | undefined,
): string | null => error?.decline_code || error?.code || null

/** The longest wait for an answer during the start of the service. */
const PERMISSIONS_TIMEOUT_MS = 5000

/** Permissions that an API key needs, by their names in Stripe's dashboard, each with a call that proves it without effects. */
const needed: Readonly<Record<string, (sdk: Stripe, options: Stripe.RequestOptions) => Promise<unknown>>> = {
  'PaymentIntents (write)': (sdk, options) => sdk.paymentIntents.list({ limit: 1 }, options),
  'Charges and Refunds (write)': (sdk, options) => sdk.refunds.list({ limit: 1 }, options),
  'Disputes (read)': (sdk, options) => sdk.disputes.list({ limit: 1 }, options),
  'SetupIntents (write)': (sdk, options) => sdk.setupIntents.list({ limit: 1 }, options),
  'PaymentMethods (write)': (sdk, options) => sdk.paymentMethods.list({ limit: 1 }, options),
  'Customers (write)': (sdk, options) => sdk.customers.list({ limit: 1 }, options),
}

/**
 * The permissions that a restricted key lacks. A call that fails for another reason (no answer, a parameter)
 * proves nothing and counts as permitted. Only a write would prove a write permission.
 */
export async function missingPermissions(
  options: Pick<StripeOptions, 'apiKey' | 'url' | 'installation' | 'clock' | 'log' | 'timeoutMs'>,
): Promise<string[]> {
  const { sdk } = openAccount({
    ...options,
    timeoutMs: Math.min(options.timeoutMs, PERMISSIONS_TIMEOUT_MS),
    retries: 0,
  })
  const refused = await Promise.all(
    Object.entries(needed).map(async ([name, call]) => {
      try {
        await call(sdk, {})
        return []
      } catch (error) {
        if (error instanceof Stripe.errors.StripePermissionError) return [name]
        options.log.warn({ err: error, permission: name }, 'a permission of the Stripe key cannot be checked')
        return []
      }
    }),
  )
  return refused.flat()
}
