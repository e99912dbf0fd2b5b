import type { Context } from '../context.ts'
import { becomeUnknown } from './outcomes.ts'

/** What still runs for an order that ends is nobody's to wait for: unknown, until its controller speaks. */
export function giveUpRunning(context: Context, orderId: number): void {
  for (const operation of context.journal.operations.open())
    if (operation.order_id === orderId)
      becomeUnknown(context, operation, { ...operation, why: 'gave_up', ended_at: context.cloud.now() })
}
