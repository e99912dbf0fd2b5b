import type { OperationRow, OrderRow } from '../../journal/tables.ts'
import { reportAcceptance } from '../acceptance/protocol.ts'
import type { Context } from '../context.ts'
import { reportUnknown } from '../ledger.ts'
import { progressOf } from '../orders/orders.ts'

/**
 * Repeats recent reports on orders, operations and acceptances after the snapshot of a new epoch. The cloud
 * may have been restored to an earlier time and have lost reports that the hub deleted after their
 * acknowledgement. A cloud that lost nothing ignores the repetitions.
 */
export function reportAgain(context: Context): void {
  const { state, settings, cloud } = context
  const since = cloud.now() - settings.reportAgainMs
  for (const operation of state.operations.unknown()) reportUnknown(context, operation)
  for (const operation of state.operations.settledSince(since)) reportSettled(context, operation)
  for (const order of state.orders.since(since)) reportOrder(context, order)
  for (const { id, ended_at } of state.acceptances.list())
    if ((ended_at ?? 0) >= since) reportAcceptance(context, id)
}

function reportSettled({ ledger }: Context, { id, settled_by, happened }: OperationRow): void {
  if (settled_by === null || happened === null) return
  ledger.report({
    kind: 'operation.settled',
    operation_id: id,
    by: settled_by,
    happened: happened,
  })
}

function reportOrder({ state, ledger }: Context, order: OrderRow): void {
  const order_id = order.id
  const bins = [...order.bins]
  const lines = progressOf(state, order_id)
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
