import type { Cancel } from '../protocol/model/runtime.ts'
import { rebuildStaleSales } from './commerce/analytics/rebuild.ts'
import { background, everyInBackground, isolated } from './platform/work/background.ts'
import { releaseAnnounced } from './commerce/deals/redemptions.ts'
import { recoverMethods } from './commerce/methods/recover-methods.ts'
import { carryOutRefunds, recoverPayments } from './commerce/payments/recover-payments.ts'
import type { MoneyServices } from './commerce/services.ts'
import { createTaskRunner, type TaskRunner } from './platform/work/runner.ts'
import { createTasks } from './background-tasks.ts'
import { recoverDeposits } from './commerce/wallet/recover-deposits.ts'

/** The rules that run by themselves (contract §5): once at the start, then again and again. */
export interface Commerce {
  start(): void
  stop(): Promise<void>
  /** One round of every rule of orders and payments, in order. */
  sweep(): Promise<void>
  tasks: TaskRunner
}

/** Tasks that are due whenever rules are: the others have their hours. */
const orderTasks = [
  'delete_expired_orders',
  'update-timed-out-orders',
  'update-unclaimed-orders-to-failed',
] as const

/** Orders and payments, apart from what requests and hubs set off. */
export function createCommerce(services: MoneyServices, processId: string): Commerce {
  const { context } = services
  const running: Cancel[] = []
  const refunds = oneAtATime(() => carryOutRefunds(services))
  const summaries = oneAtATime(async () => void (await rebuildStaleSales(context)))

  const tasks = createTaskRunner(context, processId, createTasks(context))

  async function recover(): Promise<void> {
    await isolated(context, 'recovery of payments', () => recoverPayments(services))
    await isolated(context, 'recovery of deposits', () => recoverDeposits(services))
    await isolated(context, 'refunds', refunds)
    await isolated(context, 'payment methods', () => recoverMethods(services))
    await isolated(context, 'announced redemptions', () => releaseAnnounced(context))
  }

  async function sweep(): Promise<void> {
    await recover()
    for (const task of orderTasks)
      await isolated(context, `task ${task}`, async () => (await tasks.trigger(task)).ended)
  }

  return {
    start() {
      running.push(
        context.db.onRefundDue(() => background(context, 'refunds', refunds)),
        everyInBackground(context, context.settings.sweepMs, 'payments', recover),
        // Apart, as it may take long.
        everyInBackground(context, context.settings.sweepMs, 'summaries of sales', summaries),
      )
      background(context, 'summaries of sales', summaries)
      background(context, 'payments', recover)
      tasks.start()
    },
    async stop() {
      for (const cancel of running.splice(0)) cancel()
      await tasks.stop()
    },
    sweep,
    tasks,
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
