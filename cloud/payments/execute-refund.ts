import { lockOrder } from '../orders/order-rows.ts'
import type { RefundRow } from './payment-status.ts'
import { applyRefundOutcome } from './refund-rows.ts'
import type { MoneyServices } from './services.ts'

/**
 * Carries a recorded refund out: the processor is asked under the key of the row, as often as it takes, and what it says
 * is stored. Returns the row as it stands then. Throws `ProcessorUnavailable`, which leaves it to the next sweep.
 */
export async function executeRefund(
  { context, processor }: MoneyServices,
  refundId: number,
): Promise<RefundRow> {
  const { db, checkpoint } = context
  const refund = await readRefund(context, refundId)
  if (refund.status !== 'pending') return refund
  const { processor_ref } = await db.kysely
    .selectFrom('payments')
    .select('processor_ref')
    .where('id', '=', refund.payment_id)
    .executeTakeFirstOrThrow()
  checkpoint('refund.before-processor')
  const outcome = await processor.createRefund({
    idempotencyKey: `refund:${refund.id}`,
    ref: processor_ref!,
    amount: refund.amount,
  })
  checkpoint('refund.after-processor')
  await db.transact(async (tx) => {
    await lockOrder(tx, refund.order_id)
    await applyRefundOutcome(tx, context, refund.id, outcome)
  })
  if (outcome.status === 'failed')
    context.log.error(
      { refundId, orderId: refund.order_id, amount: refund.amount, why: outcome.failureReason },
      'the processor refused a refund',
    )
  return readRefund(context, refundId)
}

function readRefund({ db }: MoneyServices['context'], refundId: number): Promise<RefundRow> {
  return db.kysely.selectFrom('refunds').selectAll().where('id', '=', refundId).executeTakeFirstOrThrow()
}
