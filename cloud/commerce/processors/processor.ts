import { Unavailable } from '../../platform/work/runner.ts'
import type { SetupIntentSecret, PaymentMethodType } from '../../../protocol/contract/consumer-payments.ts'
import type { BackoffOptions } from '../../../protocol/model/runtime.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import { isolated, reportFault } from '../../platform/work/background.ts'
import type { CloudContext } from '../../platform/context.ts'

/**
 * A card processor as the service needs it: payment intents, refunds, customers and their saved methods. Each
 * is made under an idempotency key, so that an unconfirmed request is repeated unchanged after a crash.
 */
export interface CardProcessor {
  /** The value of `payments.processor`. */
  readonly name: 'sandbox' | 'stripe'
  /** The minimum payment in a currency, in smallest units. A total of 0 needs no card. */
  leastAmount(currency: string): number
  /** Whether the processor may accept such a payment method; the intent decides. */
  knowsMethod(method: string, type: PaymentMethodType): boolean
  /** Whether the processor may save such a method, or the method behind such a wallet token. */
  savesMethod(method: string): boolean
  /** Creates and confirms an intent. If the key has already made one, returns its current state. */
  createIntent(request: IntentRequest): Promise<Intent>
  /** Reads the current state of an intent. */
  readIntent(ref: string): Promise<Intent>
  /** Completes an intent after its customer's action. */
  confirmIntent(ref: string): Promise<Intent>
  /** Cancels an unfinished intent. Returns the final state of a finished one. */
  cancelIntent(ref: string): Promise<Intent>
  /**
   * Cancels an intent that may or may not have been made. If it was not made, it never will be, even if the
   * request for it is still on its way.
   */
  abandonIntent(request: IntentRequest): Promise<Intent>
  /** Refunds money of an intent. If the key has already made a refund, returns it as it was then. */
  createRefund(request: RefundRequest): Promise<ProcessorRefund>
  /** Reads the current state of a refund. */
  readRefund(ref: string): Promise<ProcessorRefund>
  /** All refunds of an intent, requested or external. */
  listRefunds(ref: string): Promise<ListedRefund[]>
  /** Refunds or disputes of all intents since an instant, requested or external: a page, newest first. */
  listMoves(request: MovesRequest): Promise<MovesPage>
  /** Payment intents of this installation since an instant, whether or not the books know them: a page, newest first. */
  listPayments(request: Omit<MovesRequest, 'kind'>): Promise<PaymentsPage>
  /**
   * Creates a customer who saves methods, and returns its ref. If the key has already made one, returns that.
   * Sends no personal data.
   */
  createCustomer(request: CustomerRequest): Promise<string>
  /** Removes a customer with all saved methods. A missing customer is no error. */
  removeCustomer(ref: string): Promise<void>
  /** Lets the customer enter a method in the processor's own form. */
  createSetupIntent(request: { idempotencyKey: string; customer: string }): Promise<SetupIntent>
  /**
   * Saves a method with a customer. A token or a card's test name becomes a method of its own, once per key.
   * Returns an already saved method unchanged. Throws `MethodRefused`.
   */
  attachMethod(request: AttachRequest): Promise<MethodDetails>
  /** Detaches a method permanently: it cannot be saved again. A missing method is no error. */
  detachMethod(request: { method: string; customer: string }): Promise<void>
  /** Converts a webhook body to a `ProcessorEvent` (`webhook.ts`). */
  readonly readEvent: (body: unknown) => unknown
}

/**
 * The identity of a row in the processor's keys and metadata: its number and its creation time. A database
 * that was restored, or failed over without its last commits, assigns the same numbers again. The processor
 * still knows the former rows, and would answer with another customer's money.
 */
export const identityOf = ({ id, created_at }: { id: number; created_at: number }): string =>
  `${id}.${created_at}`

export interface IntentRequest {
  idempotencyKey: string
  /** The time of the first request, in milliseconds: processors forget keys. */
  startedAt: number
  /** Cents, above 0. */
  amount: number
  currency: string
  /** Null: the customer will choose a method in the processor's own form, with the intent's client secret. */
  method: string | null
  type: PaymentMethodType
  /** The customer who owns the method, if it is saved or must be saved. */
  customer: string | null
  /** The method is saved for the customer after it has paid. */
  saves: boolean
  /** The purpose; events carry it back. */
  metadata: PaymentMetadata | { deposit_id: string }
}

interface PaymentMetadata {
  payment_id: string
  order_id: number
  /** Identifies the payment if the books have lost it. */
  order_uuid?: string
  hub_id?: number
}

export type IntentStatus = 'processing' | 'requires_action' | 'succeeded' | 'failed' | 'canceled'

export interface Intent {
  /** Null if the processor refused to make the intent. */
  ref: string | null
  status: IntentStatus
  /** The issuer's decline code, or `METHOD_UNKNOWN`. */
  declineCode: string | null
  clientSecret: string | null
  /** The method's own id, if the method given was a token for it. */
  method?: string | null
}

/**
 * Stands for a decline code if the processor does not know the method, or if it belongs to another customer.
 */
export const METHOD_UNKNOWN = 'payment_method_not_found'

export interface RefundRequest {
  idempotencyKey: string
  /** The time of the first request. */
  startedAt: number
  /** The intent's. */
  ref: string
  amount: number
  /** Events carry it back. */
  metadata: { refund_id: string; order_id: number }
}

export interface ProcessorRefund {
  /** Null if the processor refused to make the refund. */
  ref: string | null
  /**
   * `pending`: the processor is working on it, and an event will report the result. Success may turn into
   * failure later.
   */
  status: 'pending' | 'succeeded' | 'failed'
  failureReason: string | null
}

/**
 * The state of money that left without a request. `unknown`: this version does not know the processor's
 * status. Then nothing is booked, and an alarm notifies a person.
 */
export type MoveStatus = ProcessorRefund['status'] | 'unknown'

/** A refund that the processor has made. */
export interface ListedRefund extends ProcessorRefund {
  ref: string
  amount: number
  /** `metadata.refund_id` of the request, if this installation made it. */
  identity: string | undefined
}

export interface MovesRequest {
  kind: 'refund' | 'dispute'
  /** The creation time of the earliest object, in milliseconds. */
  since: number
  /** `next` of the previous page; null for the newest page. */
  after: string | null
  /** Page size, 1 to 100. */
  limit: number
}

export interface ListedMove extends Omit<ListedRefund, 'status'> {
  intent: string
  /** For disputes: `succeeded` while the bank has the money, `failed` when it is back. */
  status: MoveStatus
}

export interface MovesPage {
  /** Only moves of payment intents. */
  moves: ListedMove[]
  /** Identifies the next page; null if this was the last. */
  next: string | null
}

/** A payment intent as the processor lists it. */
export interface ListedPayment {
  ref: string
  kind: 'order' | 'deposit'
  /** `payment_id` or `deposit_id` of its metadata. */
  identity: string
  amount: number
  status: IntentStatus
  /** Milliseconds. */
  createdAt: number
  orderId: number | null
  orderUuid: string | null
  hubId: number | null
}

export interface PaymentsPage {
  payments: ListedPayment[]
  /** Identifies the next page; null if this was the last. */
  next: string | null
}

/** Reads a payment from an intent's metadata; undefined if it is not a payment of this service. */
export function paymentOf(
  metadata: Readonly<Record<string, unknown>>,
): Pick<ListedPayment, 'kind' | 'identity' | 'orderId' | 'orderUuid' | 'hubId'> | undefined {
  const { payment_id, deposit_id, order_id, order_uuid, hub_id } = metadata
  const identity = payment_id ?? deposit_id
  if (typeof identity !== 'string') return undefined
  const number = (value: unknown): number | null =>
    Number.isSafeInteger(Number(value ?? NaN)) ? Number(value) : null
  return {
    kind: payment_id === undefined ? 'deposit' : 'order',
    identity,
    orderId: number(order_id),
    orderUuid: typeof order_uuid === 'string' ? order_uuid : null,
    hubId: number(hub_id),
  }
}

/**
 * The event type of a dispute, in the service's format. Its status is a `MoveStatus`, or `inquiry` while no
 * money has moved.
 */
export const DISPUTE_EVENT = 'dispute.updated'

export interface CustomerRequest {
  idempotencyKey: string
  /** The time of the first request. */
  startedAt: number
  userId: number
}

export interface SetupIntent {
  ref: string
  clientSecret: string
  status: SetupIntentSecret['status']
}

export interface AttachRequest {
  idempotencyKey: string
  method: string
  customer: string
}

export interface MethodDetails {
  /** The method's own id, if the method given was a token for it. */
  ref: string
  type: PaymentMethodType
  brand: string
  last4: string
  expMonth: number
  expYear: number
}

/** A method cannot be saved: its issuer declines it (`declineCode`), or the customer has no such method (null). */
export class MethodRefused extends Error {
  override readonly name = 'MethodRefused'
  readonly declineCode: string | null

  constructor(declineCode: string | null) {
    super(declineCode ?? 'no such method')
    this.declineCode = declineCode
  }
}

/** The processor could not be reached: it is unknown whether it executed the request. */
export class ProcessorUnavailable extends Unavailable {
  override readonly name = 'ProcessorUnavailable'
}

/** Payment methods without a card processor: values of `payments.processor` and `.method`. */
export const EXTERNAL = 'external'
export const WALLET = 'wallet'

/** Throws if another processor, configured earlier, took the money: it is out of reach. */
export function requireProcessor({ name }: CardProcessor, processor: string): void {
  if (processor !== name)
    throw new ProcessorUnavailable(`this is money of the processor "${processor}", which is not configured`)
}

/**
 * For calls that move money. An unexpected error (a malformed answer, a defect of the adapter) leaves the
 * result as unknown as no answer. The error is reported, and the call is repeated like an unanswered one.
 */
export async function orUnconfirmed<T>(context: CloudContext, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (cause) {
    if (cause instanceof ProcessorUnavailable) throw cause
    reportFault(context, cause, 'a call to the card processor')
    throw new ProcessorUnavailable('the call to the processor failed in an unexpected way', { cause })
  }
}

/** Seals an intent's client secret for the books: its holder can pay with the intent. */
export const sealedSecret = ({ sealer }: CloudContext, secret: string | null | undefined): string | null =>
  secret == null ? null : sealer.seal('client secret', secret)

/**
 * Opens the client secret for its customer. If the installation has lost its own secret, the log notifies the
 * operator, and the payment continues without it.
 */
export function openSecret({ sealer, log }: CloudContext, sealed: string | null): string | null {
  if (sealed === null) return null
  try {
    return sealer.open('client secret', sealed)
  } catch (err) {
    log.error({ err }, 'a client secret cannot be read')
    return null
  }
}

/** For requests: an unreachable processor is 503. Due work finishes a started operation. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ProcessorUnavailable) throw new ApiError('processor_unavailable')
    throw error
  }
}

/** The API error of a decline code; null means that the processor does not know the method. */
export function refusal(declineCode: string | null, details?: ErrorDetails): ApiError {
  if (declineCode === null || declineCode === METHOD_UNKNOWN)
    return new ApiError('payment_method_not_found', undefined, details)
  return new ApiError('card_declined', undefined, { decline_code: declineCode, ...details })
}

/** Executes due work now, for a request that does not wait for the result. */
export const tryNow = (context: CloudContext, during: string, work: () => Promise<unknown>): Promise<void> =>
  isolated(context, during, async () => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable)) throw error
      context.log.warn({ err: error, during }, 'the card processor cannot be reached')
    }
  })

/** Pauses between runs of due work while the processor cannot be reached. */
export const processorBackoff = ({ settings }: CloudContext): BackoffOptions => ({
  firstMs: settings.paymentRecheckMs,
  maxMs: 3_600_000,
})

/**
 * The minimum card payment by currency, in its smallest unit: Stripe's minimum charge amounts
 * (https://docs.stripe.com/currencies). The sandbox has the same.
 */
const least: Readonly<Record<string, number>> = {
  AED: 200,
  AUD: 50,
  BGN: 100,
  BRL: 50,
  CAD: 50,
  CHF: 50,
  CZK: 1500,
  DKK: 250,
  EUR: 50,
  GBP: 30,
  HKD: 400,
  HUF: 17_500,
  INR: 50,
  JPY: 50,
  MXN: 1000,
  MYR: 200,
  NOK: 300,
  NZD: 50,
  PLN: 200,
  RON: 200,
  SEK: 300,
  SGD: 50,
  THB: 1000,
  USD: 50,
}

/** For a currency outside the table the processor itself decides. */
export const leastAmount = (currency: string): number => least[currency] ?? 1
