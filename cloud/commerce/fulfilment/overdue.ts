import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { wholeMs } from '../../../protocol/model/runtime.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { uninterrupted, type Listening } from '../../platform/listening.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { moveOrder } from '../orders/move-order.ts'
import { isAtHub, lockOrder, type OrderRow } from '../orders/order-rows.ts'
import { endUndelivered } from '../refunds/undelivered.ts'

/** Ends orders whose hubs do not, so that nobody's money waits for ever. */
export function overdueWork(context: CloudContext): WorkKinds {
  const listening = context.listening ?? uninterrupted(context.runtime.clock)
  return {
    'order.overdue': { look: ({ subject }) => endOverdue(context, Number(subject), listening) },
    'order.unclaimed': { look: ({ subject }) => failUnclaimed(context, Number(subject), listening) },
  }
}

/** How long hubs still have to report what they did while this process did not listen. */
const unheardMs = ({ settings }: CloudContext, listening: Listening): number =>
  settings.hubReturnMs - listening.forMs()

/**
 * An order that no hub has reported by its start limit and the time for preparing it is not going to be: it ends here,
 * whether the hub is online or not (a hub that lost the order, or never got it, does not say so), and the hub is told. One
 * that is being prepared the hub ends by itself; where it falls silent over it, it is given much longer, as it may be
 * dispensing with the internet unplugged.
 */
function endOverdue(context: CloudContext, orderId: number, listening: Listening): Promise<Outcome> {
  const { db, runtime, settings } = context
  return db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    if (!order) return done
    const incident = { hubId: order.hub_id, kind: 'order_overdue', subject: `order ${orderId}` } as const
    if (!isAtHub(order)) {
      await clearAlarm(tx, context, incident)
      return done
    }
    const now = runtime.clock.now()
    const isQueued = order.processing_status === OrderStatus.QUEUED
    const endsAt = isQueued
      ? order.queued_at! + settings.startWithinMs + settings.prepareTimeoutMs
      : await lostAt(tx, context, order, order.preparing_at!)
    const began = order.preparing_at ?? order.queued_at! + settings.startWithinMs
    const isOverdue = began + settings.prepareTimeoutMs + settings.overdueRecheckMs <= now || endsAt <= now
    const waitMs = unheardMs(context, listening)
    if (isOverdue && waitMs <= 0)
      await raiseAlarm(tx, context, {
        ...incident,
        detail: isQueued ? 'its hub has not begun it' : 'its hub has begun it, and says nothing more',
        details: { order_id: orderId, queued_at: timestamp(order.queued_at!) },
      })
    if (endsAt > now) return { next: Math.min(endsAt, now + settings.overdueRecheckMs) }
    if (waitMs > 0) return { next: now + wholeMs(waitMs) }
    const failure_reason = isQueued ? 'not_begun' : 'hub_silent'
    await endUndelivered(tx, context, order, 'preparation_timeout', { failure_reason })
    // Should the hub have it after all, it is not to begin.
    await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.uuid })
    // The next look ends its alarm.
    return { next: now + settings.overdueRecheckMs, affected: [orderId] }
  })
}

/**
 * A hub times an unclaimed order out by itself, and reports it when it is online; one that is offline may have seen its
 * customer, so it is given as long as for any other order before the cloud speaks for it. No money goes back by itself.
 */
function failUnclaimed(context: CloudContext, orderId: number, listening: Listening): Promise<Outcome> {
  const { db, runtime, settings } = context
  return db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    const isWaiting =
      order?.processing_status === OrderStatus.READY || order?.processing_status === OrderStatus.COLLECTING
    if (!order || !isWaiting) return done
    const now = runtime.clock.now()
    const endsAt = await lostAt(tx, context, order, order.ready_at!)
    if (endsAt > now) return { next: Math.min(endsAt, now + settings.overdueRecheckMs) }
    const waitMs = unheardMs(context, listening)
    if (waitMs > 0) return { next: now + wholeMs(waitMs) }
    await moveOrder(tx, context, order, 'unclaimed', { failure_reason: 'unclaimed' })
    return { next: null, affected: [orderId] }
  })
}

/**
 * When nobody waits any more for a hub's word on an order: so long after the hub was last heard; after `since`, where it is
 * online and says nothing of this order.
 */
async function lostAt(
  tx: Tx,
  { runtime, settings }: CloudContext,
  order: OrderRow,
  since: number,
): Promise<number> {
  const now = runtime.clock.now()
  const { online, lastHeardAt } = await hubState(tx.q, order.hub_id, now, settings.onlineWithinMs)
  return ((online ? since : lastHeardAt) ?? since) + settings.silentHubMs + 1
}
