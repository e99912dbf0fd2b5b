import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { releaseRedemptions } from '../deals/redemptions.ts'
import { moveOrder, releasePromises } from '../orders/move-order.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { RefundRow } from '../orders/payment-status.ts'
import { refundRest } from './automatic-refunds.ts'
import type { NewRefund } from './refund-rows.ts'

/** The order was cancelled before anything moved: its stock is free and all of its money goes back, by the refund returned. */
export async function cancelOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  by: Pick<NewRefund, 'actor' | 'isInHand' | 'requestKey'> = {},
): Promise<RefundRow | undefined> {
  const step = await moveOrder(tx, context, order, 'cancelled')
  if (step.kind !== 'moved') return undefined
  await releaseRedemptions(tx, order.id)
  await releasePromises(tx, order.id)
  return refundRest(tx, context, order, by)
}
