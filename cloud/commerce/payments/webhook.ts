import { Agent, request } from 'node:http'
import { z } from 'zod'
import { ApiError } from '../../platform/api-error.ts'
import { optional } from '../../platform/tolerant.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'
import type { CloudContext } from '../../platform/context.ts'
import { DISPUTE_EVENT, type CardProcessor, type ProcessorRefund } from '../processors/processor.ts'
import { applyIntent } from './orphaned-payments.ts'
import type { IntentExtra } from '../money/intents.ts'
import { findOperation, type Answer } from '../money/operations.ts'
import { refundAnswer, refunds } from '../refunds/execute-refund.ts'
import { applyMove, type ProcessorMove } from './processor-moves.ts'
import { isSigned } from '../../platform/http/signature.ts'

/** An event of the processor. For event types that are not named here only the id is stored. */
export const ProcessorEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string(),
  data: z.object({
    object: z.object({
      id: z.string().min(1).max(255),
      decline_code: optional(z.string()),
      client_secret: optional(z.string()),
      /** For an intent: the id of the method. */
      payment_method: optional(z.string()),
      /** For a refund or dispute: `MoveStatus`, or `inquiry`. */
      status: optional(z.string()),
      amount: optional(z.int()),
      /** The payment intent of a refund or dispute. */
      payment_intent: optional(z.string()),
      failure_reason: optional(z.string()),
      metadata: optional(
        z.object({
          payment_id: optional(z.string()),
          deposit_id: optional(z.string()),
          refund_id: optional(z.string()),
        }),
      ),
    }),
  }),
})
export type ProcessorEvent = z.infer<typeof ProcessorEvent>

const intentOutcomes = {
  'payment_intent.succeeded': 'succeeded',
  'payment_intent.requires_action': 'requires_action',
  'payment_intent.payment_failed': 'declined',
  'payment_intent.canceled': 'canceled',
} as const
type IntentEvent = keyof typeof intentOutcomes
const isIntentEvent = (type: string): type is IntentEvent => Object.hasOwn(intentOutcomes, type)

const refundEvents: readonly string[] = ['refund.updated', 'refund.failed']
const moneyStatuses: ReadonlyMap<string, ProcessorRefund['status']> = new Map([
  ['pending', 'pending'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
])
/** Status of a dispute that has moved no money. */
const INQUIRY = 'inquiry'

/** The header that carries the signature, and its name at Stripe. */
export const SIGNATURE_HEADER = 'Payment-Signature'
export const STRIPE_SIGNATURE_HEADER = 'Stripe-Signature'

/** Receives an event in the processor's format. Throws `invalid_signature`, `invalid_json`. */
export async function receiveWebhook(
  context: CloudContext,
  secret: string | readonly string[],
  rawBody: string,
  signature: string | undefined,
  readEvent: CardProcessor['readEvent'] = (body) => body,
): Promise<void> {
  const { runtime, settings } = context
  const terms = { secret, nowMs: runtime.clock.now(), toleranceMs: settings.webhookToleranceMs }
  if (!isSigned(rawBody, signature, terms)) throw new ApiError('invalid_signature')
  await applyProcessorEvent(context, parseEvent(rawBody, readEvent))
}

function parseEvent(rawBody: string, readEvent: CardProcessor['readEvent']): ProcessorEvent {
  let json: unknown
  try {
    json = JSON.parse(rawBody)
  } catch {
    throw new ApiError('invalid_json')
  }
  const event = ProcessorEvent.safeParse(readEvent(json))
  if (!event.success) throw new ApiError('invalid_json', 'The body is not an event.')
  return event.data
}

/**
 * Applies an event in the transaction that records its id: a repeated event changes nothing (I3). The success of a
 * payment is mostly booked before its event arrives: then one read replaces the transaction.
 */
export async function applyProcessorEvent(context: CloudContext, event: ProcessorEvent): Promise<void> {
  if (await isSuccessBooked(context.db.kysely, event)) return
  await context.db.transact(async (tx) => {
    const { id, type } = event
    const recorded = await recordEvent(tx.q, { id, type, now: context.runtime.clock.now() })
    if (recorded.length === 0) return
    const { object } = event.data
    const isOurs = isIntentEvent(event.type)
      ? await applyIntentEvent(tx, context, event.type, object)
      : refundEvents.includes(event.type)
        ? await applyRefundEvent(tx, context, object)
        : event.type === DISPUTE_EVENT
          ? await applyMoveEvent(tx, context, 'dispute', object)
          : true
    if (!isOurs)
      context.log.warn({ event: event.id, object: object.id }, 'an event of money that is not ours')
  })
}

/** Nothing changes such an operation any more but the outcomes of refunds and disputes, which have their own events. */
async function isSuccessBooked(q: Queries, { type, data }: ProcessorEvent): Promise<boolean> {
  if (type !== 'payment_intent.succeeded') return false
  const known = await findOperation(q, data.object.id)
  return known?.state === 'succeeded' && (known.kind === 'payment' || known.kind === 'deposit')
}

const recordEvent = statement((q, { id, type, now }: { id: string; type: string; now: number }) =>
  q
    .insertInto('processor_events')
    .values({ id, type, received_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id'),
)

type EventObject = ProcessorEvent['data']['object']

/** Applies an event of a deposit's or an order's intent. Returns false if the intent is neither. */
async function applyIntentEvent(
  tx: Tx,
  context: CloudContext,
  type: IntentEvent,
  object: EventObject,
): Promise<boolean> {
  const { deposit_id, payment_id } = object.metadata ?? {}
  const answer: Answer<IntentExtra> = {
    outcome: intentOutcomes[type],
    ref: object.id,
    reason: object.decline_code ?? null,
    clientSecret: object.client_secret ?? null,
    extra: { method: object.payment_method ?? null },
  }
  const kind = deposit_id == null ? 'payment' : 'deposit'
  const operation = await findOperation(tx.q, object.id, { kind, name: deposit_id ?? payment_id })
  if (operation) await applyIntent(tx, context, operation, answer)
  return operation !== undefined
}

/** Applies the outcome of a refund that was pending at the processor, or its later failure. */
async function applyRefundEvent(tx: Tx, context: CloudContext, object: EventObject): Promise<boolean> {
  const named = { kind: 'refund' as const, name: object.metadata?.refund_id }
  const operation = await findOperation(tx.q, object.id, named)
  if (!operation) return applyMoveEvent(tx, context, 'refund', object)
  const answer = refundAnswer({
    ref: object.id,
    // An unknown status is not final: the refund is requested again.
    status: moneyStatuses.get(object.status ?? '') ?? 'pending',
    failureReason: object.failure_reason ?? null,
  })
  await refunds.applyEvent(tx, context, operation, answer)
  return true
}

/** Applies a refund or dispute that the books do not know: it was made at the processor. */
async function applyMoveEvent(
  tx: Tx,
  context: CloudContext,
  kind: ProcessorMove['kind'],
  { id, status, amount, payment_intent: intent, failure_reason }: EventObject,
): Promise<boolean> {
  if (status === INQUIRY) return true
  if (!intent || !amount || amount <= 0) return false
  const known = moneyStatuses.get(status ?? '')
  return applyMove(tx, context, {
    ref: id,
    kind,
    intent,
    amount,
    status: known ?? 'unknown',
    reason: failure_reason ?? (known ? null : `the processor's status is "${status ?? ''}"`),
  })
}

/**
 * Uses `node:http` over persistent connections: `fetch` takes several times as long for the calls that follow
 * each payment.
 */
const sandboxAgent = new Agent({ keepAlive: true })

/** Sends the sandbox's events to this service's own webhook, as a processor would. */
export function postEvent(url: string, body: string, signature: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, {
      method: 'POST',
      agent: sandboxAgent,
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        [SIGNATURE_HEADER]: signature,
      },
      timeout: 5000,
    })
    sent.once('response', (answer) => {
      const isTaken = answer.statusCode === 200
      answer.once('end', () => resolve(isTaken)).once('error', () => resolve(false))
      answer.resume()
    })
    sent.once('timeout', () => sent.destroy())
    // An unreachable listener counts as an answer: the event is sent again.
    sent.on('error', () => resolve(false))
    sent.end(body)
  })
}
