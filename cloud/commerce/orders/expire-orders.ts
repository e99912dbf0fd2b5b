import { sql } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { moveOrder } from './move-order.ts'
import { LAST_ACTIVE, lockOrder } from './order-rows.ts'

const BATCH = 100

/**
 * Ends carts that nobody touched for long (contract §5). An order whose payment is unfinished is left alone: the recovery
 * of payments makes a cart of it again, or a paid order.
 */
export async function expireIdleOrders(context: CloudContext): Promise<number[]> {
  const { db, runtime, settings } = context
  const before = runtime.clock.now() - settings.idleOrderMs
  const idle = await db.kysely
    .selectFrom('orders')
    .select('id')
    .where('processing_status', '<=', LAST_ACTIVE)
    .where('processing_status', '=', OrderStatus.NEW)
    .where('updated_at', '<=', before)
    .orderBy('updated_at')
    .limit(BATCH)
    .execute()
  const expired: number[] = []
  for (const { id } of idle)
    await db.transact(async (tx) => {
      const order = await lockOrder(tx, id)
      if (order?.processing_status !== OrderStatus.NEW || order.updated_at > before) return
      await moveOrder(tx, context, order, 'idle')
      tx.afterCommit(() => expired.push(id))
    })
  return expired
}

/** Deletes orders that expired long ago and that no money was ever tried for. */
export async function purgeExpiredOrders({ db, runtime, settings }: CloudContext): Promise<number[]> {
  const purged = await db.kysely
    .deleteFrom('orders')
    .where('processing_status', '=', sql.lit(OrderStatus.EXPIRED))
    .where('finished_at', '<=', runtime.clock.now() - settings.purgeExpiredMs)
    // What was merged into another order is kept (contract §10).
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
  return purged.map(({ id }) => id)
}
