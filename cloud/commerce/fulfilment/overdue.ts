import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { moveOrder } from '../orders/move-order.ts'
import { lockOrder, type OrderRow } from '../orders/order-rows.ts'
import { endUndelivered } from '../refunds/undelivered.ts'

/** Ends orders of hubs that have fallen silent, so that nobody's money waits for ever. */
export const overdueWork = (context: CloudContext): WorkKinds => ({
  'order.overdue': { look: ({ subject }) => endOverdue(context, Number(subject)) },
  'order.unclaimed': { look: ({ subject }) => failUnclaimed(context, Number(subject)) },
})

/**
 * A hub that is online times its orders out itself. One that never acknowledged the order will not begin it any more once
 * `start_by` has passed; one that did may be dispensing it with the internet unplugged, and is given much longer.
 */
function endOverdue(context: CloudContext, orderId: number): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    const isQueued = order?.processing_status === OrderStatus.QUEUED
    if (!order || (!isQueued && order.processing_status !== OrderStatus.PREPARING)) return done
    const lost = await whenLost(tx, context, order, order.queued_at!)
    if (
      lost.isOnline ||
      (lost.at > context.runtime.clock.now() && (!isQueued || (await isAcknowledged(tx, order))))
    )
      return { next: lost.lookAgainAt }
    await endUndelivered(tx, context, order, 'preparation_timeout', { failure_reason: 'hub_silent' })
    // Should the hub come back with it, it is not to begin.
    await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.id })
    return { next: null, affected: [orderId] }
  })
}

/**
 * A hub times an unclaimed order out by itself, and reports it when it is online; one that is offline may have seen its
 * customer, so it is given as long as for any other order before the cloud speaks for it. No money goes back by itself
 *.
 */
function failUnclaimed(context: CloudContext, orderId: number): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    const isWaiting =
      order?.processing_status === OrderStatus.READY || order?.processing_status === OrderStatus.COLLECTING
    if (!order || !isWaiting) return done
    const lost = await whenLost(tx, context, order, order.ready_at!)
    if (lost.isOnline || lost.at > context.runtime.clock.now()) return { next: lost.lookAgainAt }
    await moveOrder(tx, context, order, 'unclaimed', { failure_reason: 'unclaimed' })
    return { next: null, affected: [orderId] }
  })
}

interface Lost {
  isOnline: boolean
  /** When its hub, if it stays silent, is taken for lost. */
  at: number
  lookAgainAt: number
}

async function whenLost(
  tx: Tx,
  { runtime, settings }: CloudContext,
  order: OrderRow,
  since: number,
): Promise<Lost> {
  const now = runtime.clock.now()
  const { online, lastHeardAt } = await hubState(tx.q, order.hub_id, now, settings.onlineWithinMs)
  const lostAt = (lastHeardAt ?? since) + settings.silentHubMs + 1
  return {
    isOnline: online,
    at: lostAt,
    lookAgainAt: online ? now + settings.overdueRecheckMs : Math.min(now + settings.overdueRecheckMs, lostAt),
  }
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
