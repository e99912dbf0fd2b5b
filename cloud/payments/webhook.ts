import { z } from 'zod'
import { ApiError } from '../http/api-error.ts'
import type { Tx } from '../store/database.ts'
import { applyPaymentOutcome } from './payment-outcome.ts'
import type { CloudContext } from '../context.ts'
import { isSigned } from './signature.ts'

/** An event of the processor. Of types that are not named here nothing but the id is kept. */
export const ProcessorEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string(),
  data: z.object({
    object: z.object({
      id: z.string(),
      decline_code: z.string().nullish(),
      client_secret: z.string().nullish(),
      metadata: z.object({ payment_id: z.int().optional() }).optional(),
    }),
  }),
})
export type ProcessorEvent = z.infer<typeof ProcessorEvent>

const outcomes = {
  'payment_intent.succeeded': 'succeeded',
  'payment_intent.requires_action': 'requires_action',
  'payment_intent.payment_failed': 'failed',
  'payment_intent.canceled': 'canceled',
} as const
const isKnown = (type: string): type is keyof typeof outcomes => type in outcomes

/** The header in which the signature comes. */
export const SIGNATURE_HEADER = 'Payment-Signature'

/** Takes an event as it came over the wire. Throws `invalid_signature`, `invalid_json`. */
export async function receiveWebhook(
  context: CloudContext,
  secret: string,
  rawBody: string,
  signature: string | undefined,
): Promise<void> {
  const { runtime, settings } = context
  const terms = { secret, nowMs: runtime.clock.now(), toleranceMs: settings.webhookToleranceMs }
  if (!isSigned(rawBody, signature, terms)) throw new ApiError('invalid_signature')
  await applyProcessorEvent(context, parseEvent(rawBody))
}

function parseEvent(rawBody: string): ProcessorEvent {
  let json: unknown
  try {
    json = JSON.parse(rawBody)
  } catch {
    throw new ApiError('invalid_json')
  }
  const event = ProcessorEvent.safeParse(json)
  if (!event.success) throw new ApiError('invalid_json', 'The body is not an event.')
  return event.data
}

/** Applies an event in the transaction that records its id: a second time nothing happens (I3). */
export function applyProcessorEvent(context: CloudContext, event: ProcessorEvent): Promise<void> {
  return context.db.transact(async (tx) => {
    const recorded = await tx.q
      .insertInto('processor_events')
      .values({ id: event.id, type: event.type, received_at: context.runtime.clock.now() })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (recorded.numInsertedOrUpdatedRows !== 1n || !isKnown(event.type)) return
    const { object } = event.data
    const paymentId = await findPayment(tx, object.id, object.metadata?.payment_id)
    if (paymentId === undefined) {
      context.log.warn({ event: event.id, intent: object.id }, 'an event of a payment that is not ours')
      return
    }
    await applyPaymentOutcome(tx, context, paymentId, {
      ref: object.id,
      status: outcomes[event.type],
      declineCode: object.decline_code ?? null,
      clientSecret: object.client_secret ?? null,
    })
  })
}

/** By the processor's id; by ours where the event was quicker than the answer that brings the processor's. */
async function findPayment(tx: Tx, ref: string, paymentId: number | undefined): Promise<number | undefined> {
  const payment = await tx.q
    .selectFrom('payments')
    .select('id')
    .where((eb) =>
      eb.or([
        eb('processor_ref', '=', ref),
        eb.and([eb('id', '=', paymentId ?? 0), eb('processor_ref', 'is', null)]),
      ]),
    )
    .executeTakeFirst()
  return payment?.id
}
