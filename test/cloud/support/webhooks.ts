import { signPayload } from '../../../cloud/platform/http/signature.ts'
import { receiveWebhook } from '../../../cloud/commerce/payments/webhook.ts'
import { SECRET } from './bank.ts'
import type { Shop } from '../../world/shop.ts'

export { SECRET }

/**
 * Delivers the processor's events to the real receiver, each `times` times. Returns the bodies, newest last.
 */
export async function deliver({ context, clock, bank, services }: Shop, times = 1): Promise<string[]> {
  clock.advance(1000)
  const bodies: string[] = []
  await bank.deliverEvents(async (body, signature) => {
    bodies.push(body)
    for (let i = 0; i < times; i += 1)
      await receiveWebhook(context, SECRET, body, signature, services.processor.readEvent)
    return true
  })
  return bodies
}

export interface EventText {
  id: string
  type: string
  object: Record<string, unknown>
}

/** Delivers an event with any content and a valid signature. */
export async function sendEvent({ context, clock, bank, services }: Shop, event: EventText): Promise<void> {
  const body = await bank.eventOf(event)
  const signature = signPayload(body, SECRET, clock.now())
  await receiveWebhook(context, SECRET, body, signature, services.processor.readEvent)
}
