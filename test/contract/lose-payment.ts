import { refundInDashboard } from '../cloud/support/dashboard.ts'
import { schedule } from '../../cloud/platform/work/queue.ts'
import { uuid } from '../support/uuid.ts'
import type { Plant } from '../world/plant.ts'

/**
 * Deletes a payment from the books, which the processor still has. Returns a function that refunds it there.
 */
export async function losePayment(plant: Plant): Promise<() => Promise<void>> {
  const { context, processor } = plant.services
  const now = context.runtime.clock.now()
  const { ref } = await plant.wait(
    processor.createIntent({
      idempotencyKey: 'payment:lost',
      startedAt: now,
      amount: 500,
      currency: 'USD',
      method: 'pm_card_visa',
      type: 'card',
      customer: null,
      saves: false,
      metadata: { payment_id: '77.7', order_id: 77, order_uuid: uuid(77) },
    }),
  )
  await plant.wait(context.db.transact((tx) => schedule(tx, 'processor.check', 'payment', now)))
  await plant.run(0)
  return async () => void (await plant.wait(refundInDashboard(context, ref!, 500)))
}
