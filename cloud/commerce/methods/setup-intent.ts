import { createHash } from 'node:crypto'
import type { ClientSecret } from '../../../protocol/contract/consumer-payments.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { ensureCustomer } from './customers.ts'
import type { MoneyServices } from '../services.ts'
import { orUnavailable } from '../processors/reach.ts'

/**
 * Lets a user enter a method in the processor's own form (C §4.4). An intent that is never used has no effect, so nothing
 * is recorded of it. Throws `processor_unavailable`.
 */
export async function createSetupIntent(
  services: MoneyServices,
  userId: number,
  requestKey: string | undefined,
): Promise<ClientSecret> {
  const { context, processor } = services
  const customer = await orUnavailable(ensureCustomer(services, userId))
  // Processors' keys have no room for any text: this one's length is known.
  const name = createHash('sha256')
    .update(requestKey ?? uuidv7(context.runtime))
    .digest('hex')
  const { ref, clientSecret, status } = await orUnavailable(
    processor.createSetupIntent({ idempotencyKey: `setup:${customer.id}:${name}`, customer: customer.ref }),
  )
  return { setup_intent_id: ref, client_secret: clientSecret, status }
}
