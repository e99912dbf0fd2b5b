import type { OrderRow } from '../../journal/orders.ts'
import type { Context } from '../context.ts'
import { reportUnknown } from '../ledger.ts'
import { progressOf } from '../orders/orders.ts'

/**
 * Behind the snapshot of a new epoch: says again what the hub has said of orders and operations before. The cloud may have
 * been restored to an earlier time and have lost the reports, which the hub deleted once they were acknowledged. To one
 * that lost nothing this is no news.
 */
export function reportAgain(context: Context): void {
  const { journal, settings, cloud } = context
  for (const operation of journal.operations.unknown()) reportUnknown(context, operation)
  for (const order of journal.orders.since(cloud.now() - settings.reportAgainMs)) reportOrder(context, order)
}

function reportOrder({ journal, ledger }: Context, order: OrderRow): void {
  const order_id = order.id
  const bins = JSON.parse(order.bins) as number[]
  const lines = progressOf(journal, order_id)
  const wasReady = order.ready_at !== null
  if (wasReady) ledger.report({ kind: 'order.ready', order_id, bins, lines })
  switch (order.phase) {
    case 'queued':
    case 'recovering':
    case 'ready':
      return
    case 'preparing':
      return ledger.report({ kind: 'order.preparing', order_id, bins })
    case 'collecting':
    case 'completed':
    case 'cancelled':
    case 'unclaimed':
      return ledger.report({ kind: `order.${order.phase}`, order_id })
    case 'timed_out':
      return ledger.report({ kind: 'order.timed_out', order_id, bins, lines })
    case 'failed':
      return ledger.report({
        kind: 'order.failed',
        order_id,
        reason: order.reason ?? 'hardware',
        bins,
        lines,
      })
  }
}
