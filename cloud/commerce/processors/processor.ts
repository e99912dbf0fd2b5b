import { Unavailable } from '../../platform/work/runner.ts'
import type { SetupIntentSecret, PaymentMethodType } from '../../../protocol/contract/consumer-payments.ts'
import type { BackoffOptions } from '../../../protocol/model/runtime.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import { isolated, reportFault } from '../../platform/work/background.ts'
import type { CloudContext } from '../../platform/context.ts'

/**
 * A card processor, as the service needs it: payment intents, refunds, customers and their saved methods, each made under
 * an idempotency key, so that what a crash left in doubt is asked again with the same words.
 */
export interface CardProcessor {
  /** As `payments.processor` names it. */
  readonly name: 'sandbox' | 'stripe'
  /** The least that it takes in a currency; nothing at all needs no card. Smallest units. */
  leastAmount(currency: string): number
  /** Whether it might take such a payment method; the last word is that of the intent. */
  knowsMethod(method: string, type: PaymentMethodType): boolean
  /** Whether it might save such a method, or what such a wallet's token stands for. */
  savesMethod(method: string): boolean
  /** Creates and confirms an intent, or returns the one that the key has made before, as it is now. */
  createIntent(request: IntentRequest): Promise<Intent>
  /** What has become of an intent. */
  readIntent(ref: string): Promise<Intent>
  /** Completes an intent after its customer's action. */
  confirmIntent(ref: string): Promise<Intent>
  /** Gives an unfinished intent up; of a finished one it returns the end. */
  cancelIntent(ref: string): Promise<Intent>
  /**
   * The same of one of which nobody knows whether it was made: one that was not will never be, even if the request for it
   * is still on its way.
   */
  abandonIntent(request: IntentRequest): Promise<Intent>
  /** Gives money of an intent back, or returns the refund that the key has made before, as it was then. */
  createRefund(request: RefundRequest): Promise<ProcessorRefund>
  /** What has become of a refund. */
  readRefund(ref: string): Promise<ProcessorRefund>
  /** All refunds of an intent, whoever asked for them. */
  listRefunds(ref: string): Promise<MadeRefund[]>
  /** What has gone back of any intent since an instant, whoever asked for it: a page, newest first. */
  listMoves(request: MovesRequest): Promise<MovesPage>
  /** Payment intents of this installation since an instant, whether or not the books know them: a page, newest first. */
  listPayments(request: Omit<MovesRequest, 'kind'>): Promise<PaymentsPage>
  /** Creates a customer who saves methods, or returns the one whom the key has made before: its ref. Sends nothing personal. */
  createCustomer(request: CustomerRequest): Promise<string>
  /** With all saved methods. One that is gone already is no error. */
  removeCustomer(ref: string): Promise<void>
  /** Lets the customer enter a method in the processor's own form. */
  createSetupIntent(request: { idempotencyKey: string; customer: string }): Promise<SetupIntent>
  /**
   * Saves a method with a customer; what is not a method's own id (a token, a card's test name) becomes a method of its own,
   * once for a key. Returns one that is saved there already as it is. Throws `MethodRefused`.
   */
  attachMethod(request: AttachRequest): Promise<MethodDetails>
  /** For good: it is never saved again. One that is not saved there any more is no error. */
  detachMethod(request: { method: string; customer: string }): Promise<void>
  /** A body of its webhook, in the words of `ProcessorEvent` (`webhook.ts`). */
  readonly readEvent: (body: unknown) => unknown
}

/**
 * What names a row of ours to the processor, in keys and metadata: its number with the time of its birth. The number alone is
 * given out again by a database that was restored, or failed over with its last commits lost; the processor knows it as it
 * was before, and would answer with another customer's money.
 */
export const identityOf = ({ id, created_at }: { id: number; created_at: number }): string =>
  `${id}.${created_at}`

export interface IntentRequest {
  idempotencyKey: string
  /** When this was asked for first: processors forget keys. Milliseconds. */
  begunAt: number
  /** Cents, above 0. */
  amount: number
  currency: string
  /** Null: the customer will choose one in the processor's own form, with the intent's client secret. */
  method: string | null
  type: PaymentMethodType
  /** Whose method it is, where it is saved or is to be. */
  customer: string | null
  /** Once it has paid, the method is the customer's. */
  saves: boolean
  /** What it is for; comes back in events. */
  metadata: PaymentMetadata | { deposit_id: string }
}

interface PaymentMetadata {
  payment_id: string
  order_id: number
  /** By this the payment is recognised if the books have lost it. */
  order_uuid?: string
  hub_id?: number
}

export type IntentStatus = 'processing' | 'requires_action' | 'succeeded' | 'failed' | 'canceled'

export interface Intent {
  /** Null where the processor refused to make one. */
  ref: string | null
  status: IntentStatus
  /** The issuer's word, or `METHOD_UNKNOWN`. */
  declineCode: string | null
  clientSecret: string | null
  /** The method's own id, where the one given was a token for it. */
  method?: string | null
}

/** Stands for a decline code where the processor knows no such method, or it is somebody else's. */
export const METHOD_UNKNOWN = 'payment_method_not_found'

export interface RefundRequest {
  idempotencyKey: string
  /** When this was asked for first. */
  begunAt: number
  /** The intent's. */
  ref: string
  amount: number
  /** Comes back in events. */
  metadata: { refund_id: string; order_id: number }
}

export interface ProcessorRefund {
  /** Null where the processor refused to make one. */
  ref: string | null
  /** `pending`: the processor is at work on it, and an event will tell. Success may turn into failure later. */
  status: 'pending' | 'succeeded' | 'failed'
  failureReason: string | null
}

/**
 * What became of money that left without being asked for. `unknown`: the processor used a word that this version does not
 * know. Nothing is booked then, and a person is told.
 */
export type MoveStatus = ProcessorRefund['status'] | 'unknown'

/** One that the processor has made. */
export interface MadeRefund extends ProcessorRefund {
  ref: string
  amount: number
  /** As `metadata.refund_id` of the request said, where this installation asked for it. */
  identity: string | undefined
}

export interface MovesRequest {
  kind: 'refund' | 'dispute'
  /** When the earliest of them was made. Milliseconds. */
  since: number
  /** `next` of the page before; null for the newest. */
  after: string | null
  /** The most of them, 1 to 100. */
  limit: number
}

export interface MadeMove extends Omit<MadeRefund, 'status'> {
  intent: string
  /** Of a dispute: `succeeded` while the bank has the money, `failed` once it is back. */
  status: MoveStatus
}

export interface MovesPage {
  /** Only of payment intents. */
  moves: MadeMove[]
  /** Names the next page; null where this was the last. */
  next: string | null
}

/** A payment intent as the processor lists it. */
export interface MadePayment {
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
  payments: MadePayment[]
  /** Names the next page; null if this was the last. */
  next: string | null
}

/** What the metadata of an intent tells of a payment; undefined if it is none of this service's. */
export function paymentOf(
  metadata: Readonly<Record<string, unknown>>,
): Pick<MadePayment, 'kind' | 'identity' | 'orderId' | 'orderUuid' | 'hubId'> | undefined {
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

/** The type of an event of a dispute, in our words. Its status is a `MoveStatus`, or `inquiry` while no money has moved. */
export const DISPUTE_EVENT = 'dispute.updated'

export interface CustomerRequest {
  idempotencyKey: string
  /** When this was asked for first. */
  begunAt: number
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
  /** Its own id, where the one given was a token for it. */
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

/** The processor could not be reached: nobody knows whether it has done what was asked. */
export class ProcessorUnavailable extends Unavailable {
  override readonly name = 'ProcessorUnavailable'
}

/** Ways of paying that no card processor has to do with, as `payments.processor` and `.method` name them. */
export const EXTERNAL = 'external'
export const WALLET = 'wallet'

/** Money that another processor took, before this one was configured, is out of reach. */
export function requireProcessor({ name }: CardProcessor, processor: string): void {
  if (processor !== name)
    throw new ProcessorUnavailable(`this is money of the processor "${processor}", which is not configured`)
}

/**
 * For calls that move money. An error that nobody foresaw (an answer that makes no sense, a defect of the adapter) says no
 * more of what was done than no answer: the fault is reported, and the call is repeated like one that nobody answered.
 */
export async function orInDoubt<T>(context: CloudContext, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (cause) {
    if (cause instanceof ProcessorUnavailable) throw cause
    reportFault(context, cause, 'a call to the card processor')
    throw new ProcessorUnavailable('the call to the processor failed in a way that nobody foresaw', { cause })
  }
}

/** An intent's client secret as the books keep it: whoever has it pays with the intent. */
export const sealedSecret = ({ sealer }: CloudContext, secret: string | null | undefined): string | null =>
  secret == null ? null : sealer.seal('client secret', secret)

/** The same for its customer. Where the installation has lost its secret an operator is told, and the payment goes on without. */
export function openSecret({ sealer, log }: CloudContext, sealed: string | null): string | null {
  if (sealed === null) return null
  try {
    return sealer.open('client secret', sealed)
  } catch (err) {
    log.error({ err }, 'a client secret cannot be read')
    return null
  }
}

/** For requests: a processor out of reach is 503. What was begun is finished as due work. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ProcessorUnavailable) throw new ApiError('processor_unavailable')
    throw error
  }
}

/** What a decline code means; null where the processor knows no such method. */
export function refusal(declineCode: string | null, details?: ErrorDetails): ApiError {
  if (declineCode === null || declineCode === METHOD_UNKNOWN)
    return new ApiError('payment_method_not_found', undefined, details)
  return new ApiError('card_declined', undefined, { decline_code: declineCode, ...details })
}

/** Does now, for a request that does not wait for its outcome, what due work does otherwise. */
export const tryNow = (context: CloudContext, during: string, work: () => Promise<unknown>): Promise<void> =>
  isolated(context, during, async () => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable)) throw error
      context.log.warn({ err: error, during }, 'the card processor cannot be reached')
    }
  })

/** Pauses between looks at due work for which the processor cannot be reached. */
export const processorBackoff = ({ settings }: CloudContext): BackoffOptions => ({
  firstMs: settings.paymentRecheckMs,
  maxMs: 3_600_000,
})
