import type { Cancel } from '../protocol/model/runtime.ts'
import { rebuildStaleSales } from './analytics/rebuild.ts'
import { background, everyInBackground, isolated } from './background.ts'
import { expireIdleOrders, purgeExpiredOrders } from './orders/expire-orders.ts'
import { endOrdersOfSilentHubs } from './orders/silent-hubs.ts'
import { carryOutRefunds, recoverPayments } from './payments/recover-payments.ts'
import type { MoneyServices } from './payments/services.ts'

/** The rules that run by themselves (contract §5): once at the start, then again and again. */
export interface Commerce {
  start(): void
  stop(): void
  /** One round of every rule, in order. */
  sweep(): Promise<void>
}

/** Orders and payments, apart from what requests and hubs set off. */
export function createCommerce(services: MoneyServices): Commerce {
  const { context } = services
  const running: Cancel[] = []
  const refunds = oneAtATime(() => carryOutRefunds(services))
  const summaries = oneAtATime(async () => void (await rebuildStaleSales(context)))

  async function sweep(): Promise<void> {
    await isolated(context, 'recovery of payments', () => recoverPayments(services))
    await isolated(context, 'refunds', refunds)
    await isolated(context, 'idle orders', () => expireIdleOrders(context))
    await isolated(context, 'expired orders', () => purgeExpiredOrders(context))
    await isolated(context, 'orders of silent hubs', () => endOrdersOfSilentHubs(context))
  }

  return {
    start() {
      running.push(
        context.db.onRefundDue(() => background(context, 'refunds', refunds)),
        everyInBackground(context, context.settings.sweepMs, 'orders and payments', sweep),
        // Apart, as it may take long.
        everyInBackground(context, context.settings.sweepMs, 'summaries of sales', summaries),
      )
      background(context, 'summaries of sales', summaries)
      background(context, 'orders and payments', sweep)
    },
    stop() {
      for (const cancel of running.splice(0)) cancel()
    },
    sweep,
  }
}

/** Of calls that come while one is under way, one more follows it. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined
  function begin(): Promise<void> {
    next = undefined
    current = work().finally(() => (current = undefined))
    return current
  }
  return () => {
    if (!current) return begin()
    next ??= current.then(begin, begin)
    return next
  }
}
