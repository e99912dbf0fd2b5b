import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { wholeMs } from '../../../protocol/model/runtime.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { uninterrupted, type Listening } from '../../platform/listening.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { moveOrder } from '../orders/move-order.ts'
import { isAtHub, lockOrder, type OrderRow } from '../orders/order-rows.ts'
import { endUndelivered } from '../refunds/undelivered.ts'

/** Ends orders that their hubs do not end, so that no customer's money is held indefinitely. */
export function overdueWork(context: CloudContext): WorkKinds {
  const listening = context.listening ?? uninterrupted(context.runtime.clock)
  return {
    'order.overdue': { run: ({ subject }) => endOverdue(context, Number(subject), listening) },
    'order.unclaimed': { run: ({ subject }) => failUnclaimed(context, Number(subject), listening) },
  }
}

/**
 * The time that hubs still have for reports on the period in which this process did not listen, in
 * milliseconds.
 */
const silentMs = ({ settings }: CloudContext, listening: Listening): number =>
  settings.hubReturnMs - listening.forMs()

/**
 * Ends an order that no hub has reported by its start limit plus the preparation time.
 *
 * The hub's connection does not matter: a hub that lost the order, or never got it, cannot report it. The hub
 * receives a cancellation.
 *
 * A hub ends an order in preparation without help. If the hub falls silent then, it gets much longer: it may
 * be dispensing with the internet unplugged.
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
    const waitMs = silentMs(context, listening)
    if (isOverdue && waitMs <= 0)
      await raiseAlarm(tx, context, {
        ...incident,
        soldBy: order.owner_id!,
        detail: isQueued ? 'its hub has not started it' : 'its hub has started it, and reports nothing more',
        details: { order_id: orderId, queued_at: timestamp(order.queued_at!) },
      })
    if (endsAt > now) return { next: Math.min(endsAt, now + settings.overdueRecheckMs) }
    if (waitMs > 0) return { next: now + wholeMs(waitMs) }
    const failure_reason = isQueued ? 'not_begun' : 'hub_silent'
    await endUndelivered(tx, context, order, 'preparation_timeout', { failure_reason })
    // If the hub has the order after all, it must not start it.
    await enqueue(tx, order.hub_id, { kind: 'order.cancel', order_id: order.uuid })
    // The next run clears its alarm.
    return { next: now + settings.overdueRecheckMs, affected: [orderId] }
  })
}

/**
 * Ends an unclaimed order as failed. A hub times the order out and reports that when it is online. An offline
 * hub may have seen its customer, so it gets the same time as for any other order before the cloud decides.
 * No money is refunded automatically.
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
    const waitMs = silentMs(context, listening)
    if (waitMs > 0) return { next: now + wholeMs(waitMs) }
    await moveOrder(tx, context, order, 'unclaimed', { failure_reason: 'unclaimed' })
    return { next: null, affected: [orderId] }
  })
}

/**
 * The time from which the order's hub counts as lost: `silentHubMs` after the hub's last message, or after
 * `since` if the hub is online but does not report the order.
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
