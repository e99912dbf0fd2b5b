import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import type { Tx } from '../../platform/store/database.ts'
import { endUndelivered } from './apply-hub-entry.ts'
import { LAST_ACTIVE, lockOrder, type OrderRow } from '../orders/order-rows.ts'

const BATCH = 100

/**
 * Ends orders of hubs that have fallen silent, so that nobody's money waits for ever. A hub that is online times its
 * orders out itself. One that never acknowledged the order will not begin it any more once `start_by` has passed; one
 * that did may be dispensing it with the internet unplugged, and is given much longer.
 */
export async function endOrdersOfSilentHubs(context: CloudContext): Promise<number[]> {
  const { db, runtime, settings } = context
  const late = await db.kysely
    .selectFrom('orders')
    .select('id')
    .where('processing_status', '<=', LAST_ACTIVE)
    .where('processing_status', 'in', [OrderStatus.QUEUED, OrderStatus.PREPARING])
    .where('queued_at', '<=', runtime.clock.now() - settings.startWithinMs - settings.prepareTimeoutMs)
    .orderBy('queued_at')
    .limit(BATCH)
    .execute()
  const ended: number[] = []
  for (const { id } of late)
    await db.transact(async (tx) => {
      const order = await lockOrder(tx, id)
      if (!order || !(await isLost(tx, context, order))) return
      await endUndelivered(tx, context, order, 'preparation_timeout', { failure_reason: 'hub_silent' })
      // Should the hub come back with it, it is not to begin.
      await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.id })
      tx.afterCommit(() => ended.push(id))
    })
  return ended
}

async function isLost(tx: Tx, { runtime, settings }: CloudContext, order: OrderRow): Promise<boolean> {
  const now = runtime.clock.now()
  const { online, lastHeardAt } = await hubState(tx.q, order.hub_id, now, settings.onlineWithinMs)
  if (online) return false
  const isQueued = order.processing_status === OrderStatus.QUEUED
  if (!isQueued && order.processing_status !== OrderStatus.PREPARING) return false
  if (isQueued && !(await isAcknowledged(tx, order))) return true
  return now - (lastHeardAt ?? order.queued_at!) > settings.silentHubMs
}

/** Whether the hub has acknowledged the entry that brought the order: it is gone from the outbox then. */
async function isAcknowledged(tx: Tx, order: OrderRow): Promise<boolean> {
  const waiting = await tx.q
    .selectFrom('hub_outbox_entries as e')
    .innerJoin('hub_outboxes as o', (join) =>
      join.onRef('o.hub_id', '=', 'e.hub_id').onRef('o.epoch', '=', 'e.epoch'),
    )
    .select('e.seq')
    .where('e.hub_id', '=', order.hub_id)
    .whereRef('e.seq', '>', 'o.base')
    .where(
      'e.body',
      '=',
      JSON.stringify({ kind: 'order.queued', order: JSON.parse(order.queued_order!) as unknown }),
    )
    .executeTakeFirst()
  return waiting === undefined
}
