import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { moveOrder } from '../orders/move-order.ts'
import { LAST_ACTIVE, lockOrder } from '../orders/order-rows.ts'

const BATCH = 100

/**
 * Ends READY and COLLECTING orders whose hub does not come back. A hub times an unclaimed order out by itself, and tells of
 * it when it is online; one that is offline may have seen its customer, so it is given as long as for any other order
 * before the cloud speaks for it. No money goes back by itself (contract §5).
 */
export async function failUnclaimedOrders(context: CloudContext): Promise<number[]> {
  const { db, runtime, settings } = context
  const now = runtime.clock.now()
  const late = await db.kysely
    .selectFrom('orders')
    .select('id')
    .where('processing_status', '<=', LAST_ACTIVE)
    .where('processing_status', 'in', [OrderStatus.READY, OrderStatus.COLLECTING])
    .where('ready_at', '<=', now - settings.unclaimedTimeoutMs)
    .orderBy('ready_at')
    .limit(BATCH)
    .execute()
  const failed: number[] = []
  for (const { id } of late)
    await db.transact(async (tx) => {
      const order = await lockOrder(tx, id)
      if (!order) return
      const hub = await hubState(tx.q, order.hub_id, now, settings.onlineWithinMs)
      if (hub.online || now - (hub.lastHeardAt ?? order.ready_at!) <= settings.silentHubMs) return
      const step = await moveOrder(tx, context, order, 'unclaimed', { failure_reason: 'unclaimed' })
      if (step.kind === 'moved') tx.afterCommit(() => failed.push(id))
    })
  return failed
}
