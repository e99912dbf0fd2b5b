import { markBestsellers } from '../catalogue/bestsellers.ts'
import type { CloudContext } from '../context.ts'
import { noticeExpiringOrders, noticeUnclaimedOrders } from '../notifications/order-notices.ts'
import { expireIdleOrders, purgeExpiredOrders } from '../orders/expire-orders.ts'
import { endOrdersOfSilentHubs } from '../orders/silent-hubs.ts'
import { failUnclaimedOrders } from '../orders/unclaimed-orders.ts'
import type { Tasks } from './task.ts'

const HOUR_MS = 3_600_000

/** Contract §5 and §11: what each task does, and how often. */
export function createTasks(context: CloudContext): Tasks {
  const periodMs = context.settings.taskPeriodMs
  return {
    bestsellers: { periodMs: HOUR_MS, run: () => markBestsellers(context) },
    'update-timed-out-orders': { periodMs, run: () => endOrdersOfSilentHubs(context) },
    delete_expired_orders: {
      periodMs,
      run: async () => [...(await expireIdleOrders(context)), ...(await purgeExpiredOrders(context))],
    },
    'notify-about-expiring-orders': { periodMs, run: () => noticeExpiringOrders(context) },
    'update-unclaimed-orders-to-failed': { periodMs, run: () => failUnclaimedOrders(context) },
    'notify-about-unclaimed-orders': { periodMs, run: () => noticeUnclaimedOrders(context) },
  }
}
