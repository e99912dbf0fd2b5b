import type { CloudContext } from '../../../platform/context.ts'
import { done, Unavailable, type WorkKinds } from '../../../platform/work/runner.ts'
import { signPayload } from '../signature.ts'
import { completeRefund, moveIntent, readIntent, readSandboxRefund } from './books.ts'

/** Hands an event to whoever listens; true where it was taken (a 2xx). Never rejects for a listener out of reach. */
export type DeliverEvent = (body: string, signature: string) => Promise<boolean>

export interface DeliveryOptions {
  /** With the database of the sandbox's own books. */
  context: CloudContext
  secret: string
  deliver: DeliverEvent
}

/**
 * What the sandbox does by itself: asynchronous payments and refunds succeed in the end, and say so by webhook alone;
 * events are delivered until they are taken.
 */
export const sandboxWork = ({ context, secret, deliver }: DeliveryOptions): WorkKinds => ({
  'sandbox.intent': {
    look: ({ subject }) =>
      context.db.transact(async (tx) => {
        await moveIntent(tx, context.runtime, await readIntent(tx, subject), ['processing'], 'succeeded', 0)
        return done
      }),
  },
  'sandbox.refund': {
    look: ({ subject }) =>
      context.db.transact(async (tx) => {
        await completeRefund(tx, context.runtime, await readSandboxRefund(tx, subject))
        return done
      }),
  },
  'sandbox.event': {
    backoff: { firstMs: 1000, maxMs: 60_000 },
    async look({ subject }) {
      const { db, runtime, checkpoint } = context
      const event = await db.kysely
        .selectFrom('sandbox_events')
        .select('body')
        .where('id', '=', subject)
        .where('delivered_at', 'is', null)
        .executeTakeFirst()
      if (!event) return done
      const isTaken = await deliver(event.body, signPayload(event.body, secret, runtime.clock.now()))
      checkpoint('processor.event-delivered')
      if (!isTaken) throw new Unavailable('the event was not taken')
      await db.kysely
        .updateTable('sandbox_events')
        .set({ delivered_at: runtime.clock.now() })
        .where('id', '=', subject)
        .execute()
      return done
    },
  },
})
