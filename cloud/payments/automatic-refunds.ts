import type { CloudContext } from '../context.ts'
import { lockItems, type OrderRow } from '../orders/order-rows.ts'
import { unitShare } from '../orders/pricing.ts'
import type { Tx } from '../store/database.ts'
import { insertRefund, paidPayment, refundable } from './refund-rows.ts'

/**
 * What was paid for and did not drop goes back without asking (contract §5): of each line the frozen share of the units
 * that are missing and not refunded yet. Under the order's lock, in the transaction of the report.
 */
export async function refundUndelivered(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  reason: 'short' | 'timed_out' | 'failed',
): Promise<void> {
  const payment = await paidPayment(tx, order.id)
  if (!payment) return
  for (const item of await lockItems(tx, order.id)) {
    const units = item.qty - Math.min(item.qty, item.qty_dropped) - item.refunded_quantity
    if (units <= 0) continue
    const rest = await refundable(tx, order, payment)
    const share = (amount: number): number => unitShare(amount, item.qty, item.refunded_quantity, units)
    const tax = Math.min(rest.tax, share(item.tax!))
    const amount = Math.min(rest.amount, share(item.net! + item.tax!))
    if (amount > 0)
      await insertRefund(tx, context, { payment, itemId: item.id, quantity: units, amount, tax, reason })
  }
}

/** All that is left of an order's money goes back. */
export async function refundRest(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  reason: 'cancelled',
): Promise<void> {
  const payment = await paidPayment(tx, order.id)
  if (!payment) return
  const { amount, tax } = await refundable(tx, order, payment)
  if (amount > 0) await insertRefund(tx, context, { payment, itemId: null, quantity: 0, amount, tax, reason })
}
