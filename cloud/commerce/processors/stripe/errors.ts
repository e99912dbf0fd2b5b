import { Stripe } from 'stripe'
import { ProcessorUnavailable } from '../processor.ts'

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
  error: { decline_code?: string | undefined; code?: string | undefined } | null | undefined,
): string | null => error?.decline_code || error?.code || null
