import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { LAST_ACTIVE, lockOrder } from '../orders/order-rows.ts'
import { statement } from '../../platform/store/statement.ts'
import { EXTERNAL } from '../processors/payment-methods.ts'
import { applyPaymentOutcome } from './payment-outcome.ts'

export interface ExternalConfirmation {
  hubId: number
  bin: number
  /** The public prefix of the API key that vouches for the money, or whatever else names its holder. */
  key: string
}

/**
 * The integrator's word that the order for which this bin is kept is paid (contract §5): the order goes to the hub. Its id,
 * also when the word is repeated before the bin is filled; null where no order waits for such a word at this bin.
 */
export async function confirmExternal(
  context: CloudContext,
  confirmation: ExternalConfirmation,
): Promise<number | null> {
  const { db } = context
  const [waiting] = await claims(db.kysely, confirmation)
  if (!waiting) return null
  return db.transact(async (tx) => {
    // Looked up again under the lock: the claim may have ended while it was waited for.
    await lockOrder(tx, waiting.order_id)
    const [claim] = await claims(tx.q, confirmation)
    if (claim?.order_id !== waiting.order_id) return null
    await applyPaymentOutcome(tx, context, claim.payment_id, {
      ref: null,
      status: 'succeeded',
      declineCode: null,
      clientSecret: null,
      confirmedByKey: confirmation.key,
    })
    return claim.order_id
  })
}

/** The order that a bin is kept for until an integrator has been paid. Asked whenever a bin is to open. */
const claims = statement((q, { hubId, bin }: Pick<ExternalConfirmation, 'hubId' | 'bin'>) =>
  q
    .selectFrom('orders')
    .innerJoin('payments', 'payments.order_id', 'orders.id')
    .select(['orders.id as order_id', 'payments.id as payment_id'])
    .where('orders.hub_id', '=', hubId)
    .where('orders.reserved_bin', '=', bin)
    .where('orders.processing_status', '<=', LAST_ACTIVE)
    .where('orders.processing_status', 'in', [
      OrderStatus.PENDING_PAYMENT,
      OrderStatus.QUEUED,
      OrderStatus.PREPARING,
    ])
    .where('payments.processor', '=', EXTERNAL)
    .where('payments.status', 'in', ['requires_action', 'completed'])
    .limit(1),
)
