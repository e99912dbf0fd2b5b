import { deliverDueEvents } from '../../../cloud/payments/sandbox/deliver-events.ts'
import { signPayload } from '../../../cloud/payments/signature.ts'
import { receiveWebhook } from '../../../cloud/payments/webhook.ts'
import type { Shop } from './shop.ts'

export const SECRET = 'whsec'

/** Delivers what the sandbox has to say to the real receiver, each event so many times; the bodies sent, newest last. */
export async function deliver({ context, clock }: Shop, times = 1): Promise<string[]> {
  clock.advance(1000)
  const bodies: string[] = []
  await deliverDueEvents({
    context,
    secret: SECRET,
    async deliver(body, signature) {
      bodies.push(body)
      for (let i = 0; i < times; i += 1) await receiveWebhook(context, SECRET, body, signature)
      return true
    },
  })
  return bodies
}

export interface EventText {
  id: string
  type: string
  object: Record<string, unknown>
}

/** An event that says anything, well signed. */
export async function tell({ context, clock }: Shop, { id, type, object }: EventText): Promise<void> {
  const body = JSON.stringify({ id, type, data: { object } })
  await receiveWebhook(context, SECRET, body, signPayload(body, SECRET, clock.now()))
}
