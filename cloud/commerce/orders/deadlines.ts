import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { moveOrder } from './move-order.ts'
import { lockOrder } from './order-rows.ts'

/** Looks at a cart that nobody touches, and at one that expired (contract §5). */
export const deadlineWork = (context: CloudContext): WorkKinds => ({
  'order.idle': { look: ({ subject }) => expireIdle(context, Number(subject)) },
  'order.expired': { look: ({ subject }) => purgeExpired(context, Number(subject)) },
})

/**
 * Ends a cart that nobody touched for long. One whose payment is unfinished is left alone: the payment's own deadline makes
 * a cart of it again, or a paid order.
 */
function expireIdle(context: CloudContext, orderId: number): Promise<Outcome> {
  const { db, runtime, settings } = context
  return db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    if (order?.processing_status !== OrderStatus.NEW) return done
    const idleAt = order.updated_at + settings.idleOrderMs
    if (idleAt > runtime.clock.now()) return { next: idleAt }
    await moveOrder(tx, context, order, 'idle')
    return { next: null, affected: [orderId] }
  })
}

/** Deletes an order that expired long ago and that no money was ever tried for. What was merged into another one is kept. */
async function purgeExpired({ db }: CloudContext, orderId: number): Promise<Outcome> {
  const purged = await db.kysely
    .deleteFrom('orders')
    .where('id', '=', orderId)
    .where('processing_status', '=', OrderStatus.EXPIRED)
    .where('merged_into', 'is', null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb.selectFrom('payments').select('payments.id').whereRef('payments.order_id', '=', 'orders.id'),
        ),
      ),
    )
    .returning('id')
    .execute()
  return { next: null, affected: purged.map(({ id }) => id) }
}
