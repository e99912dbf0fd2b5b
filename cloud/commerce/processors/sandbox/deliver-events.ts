import type { Cancel } from '../../../../protocol/model/runtime.ts'
import { everyInBackground } from '../../../platform/work/background.ts'
import type { CloudContext } from '../../../platform/context.ts'
import { signPayload } from '../signature.ts'
import { completeRefund, moveIntent, readIntent, readSandboxRefund } from './books.ts'

/** Hands an event to whoever listens; true where it was taken (a 2xx). Never rejects for a listener out of reach. */
export type DeliverEvent = (body: string, signature: string) => Promise<boolean>

export interface DeliveryOptions {
  context: CloudContext
  secret: string
  deliver: DeliverEvent
  periodMs?: number
}

const PERIOD_MS = 500
const RETRY_MS = 1000
const MAX_RETRY_MS = 60_000
const BATCH = 50

/** Delivers the sandbox's events until they are taken, however often they must be sent. */
export function startDelivery(options: DeliveryOptions): Cancel {
  return everyInBackground(options.context, options.periodMs ?? PERIOD_MS, 'sandbox events', () =>
    deliverDueEvents(options),
  )
}

/** One round: completes payments that were processing, then sends what is due. */
export async function deliverDueEvents({ context, secret, deliver }: DeliveryOptions): Promise<void> {
  const { db, runtime, checkpoint } = context
  await completeProcessing(context)
  const due = await db.kysely
    .selectFrom('sandbox_events')
    .selectAll()
    .where('delivered_at', 'is', null)
    .where('due_at', '<=', runtime.clock.now())
    .orderBy('due_at')
    .orderBy('id')
    .limit(BATCH)
    .execute()
  for (const event of due) {
    const taken = await deliver(event.body, signPayload(event.body, secret, runtime.clock.now()))
    checkpoint('processor.event-delivered')
    const now = runtime.clock.now()
    const retryMs = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(event.attempts, 16))
    await db.kysely
      .updateTable('sandbox_events')
      .set({ attempts: event.attempts + 1, ...(taken ? { delivered_at: now } : { due_at: now + retryMs }) })
      .where('id', '=', event.id)
      .execute()
  }
}

/** Asynchronous payments and refunds succeed in the end, and say so by webhook alone. */
async function completeProcessing({ db, runtime }: CloudContext): Promise<void> {
  const processing = await db.kysely
    .selectFrom('sandbox_intents')
    .select('id')
    .where('status', '=', 'processing')
    .limit(BATCH)
    .execute()
  for (const { id } of processing)
    await db.transact(async (tx) => {
      await moveIntent(tx, runtime, await readIntent(tx, id), ['processing'], 'succeeded', 0)
    })
  const refunding = await db.kysely
    .selectFrom('sandbox_refunds')
    .select('id')
    .where('status', '=', 'pending')
    .limit(BATCH)
    .execute()
  for (const { id } of refunding)
    await db.transact(async (tx) => completeRefund(tx, runtime, await readSandboxRefund(tx, id)))
}
