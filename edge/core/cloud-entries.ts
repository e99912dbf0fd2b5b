import { CloudEntry, type QueuedOrder } from '../../protocol/mqtt/cloud-entries.ts'
import { ApplyError } from '../journal/apply-error.ts'
import type { Context } from './context.ts'
import { applySnapshot } from './recovery/inheritance.ts'
import { acceptOrder, cancelOrder, isOwn } from './orders/orders.ts'
import { applyCount, applyPlanogram } from './stock.ts'

/** Applies one entry of the cloud's stream, in the inbox's transaction. Throws an `ApplyError` where it never can be. */
export function applyCloudEntry(context: Context, body: unknown): void {
  const parsed = CloudEntry.safeParse(body)
  if (!parsed.success) throw new ApplyError('invalid', parsed.error.message)
  const entry = parsed.data
  switch (entry.kind) {
    case 'order.queued':
      acceptQueued(context, entry.order)
      return
    case 'order.cancel':
      cancelOrder(context, entry.order_id)
      return
    case 'stock.count':
      applyCount(context, entry.count)
      return
    case 'planogram':
      applyPlanogram(context, entry.facings)
      return
    case 'config':
      context.journal.meta.setConfig(entry.config)
      return
    case 'snapshot':
      applySnapshot(context, entry)
      return
  }
}

/** An order queued for an earlier store of this hub may have been dispensed by it already: nothing more is. */
function acceptQueued(context: Context, order: QueuedOrder): void {
  if (isOwn(context, order)) acceptOrder(context, order, 'queued')
  else acceptOrder(context, order, 'inherited', { bins: [], dropped: new Map() })
}
