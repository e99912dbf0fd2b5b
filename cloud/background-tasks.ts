import { markBestsellers } from './commerce/catalogue/bestsellers.ts'
import type { CloudContext } from './platform/context.ts'
import { noticeExpiringOrders, noticeUnclaimedOrders } from './people/notifications/order-notices.ts'
import { expireIdleOrders, purgeExpiredOrders } from './commerce/orders/expire-orders.ts'
import { endOrdersOfSilentHubs } from './commerce/fulfilment/silent-hubs.ts'
import { failUnclaimedOrders } from './commerce/fulfilment/unclaimed-orders.ts'
import type { Tasks } from './platform/work/task.ts'

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
