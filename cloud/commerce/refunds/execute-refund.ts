import type { CloudContext } from '../../platform/context.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { lockOrder } from '../orders/order-rows.ts'
import type { RefundRow } from '../orders/payment-status.ts'
import { ProcessorUnavailable, type ProcessorRefund } from '../processors/processor.ts'
import { replaceRefused } from './automatic-refunds.ts'
import { applyRefundOutcome } from './refund-rows.ts'
import type { MoneyServices } from '../services.ts'
import { requireProcessor } from '../processors/reach.ts'

/**
 * Carries a recorded refund out: the processor is asked under the key of the row, as often as it takes, and what it says
 * is stored. Returns the row as it stands then. Throws `ProcessorUnavailable`, which leaves it to due work.
 */
export async function executeRefund(services: MoneyServices, refundId: number): Promise<RefundRow> {
  const { context } = services
  const { db, checkpoint } = context
  const refund = await readRefund(context, refundId)
  if (refund.status !== 'pending') return refund
  checkpoint('refund.before-processor')
  const outcome = await askProcessor(services, refund)
  checkpoint('refund.after-processor')
  await db.transact(async (tx) => {
    const order = (await lockOrder(tx, refund.order_id))!
    await applyRefundOutcome(tx, context, order, refund.id, outcome)
  })
  if (outcome.status === 'failed')
    context.log.error(
      { refundId, orderId: refund.order_id, amount: refund.amount, why: outcome.failureReason },
      'the processor refused a refund',
    )
  return readRefund(context, refundId)
}

/** One that the processor is at work on is asked after; any other is asked for. */
async function askProcessor(
  { context, processor }: MoneyServices,
  refund: RefundRow,
): Promise<ProcessorRefund> {
  try {
    const payment = await context.db.kysely
      .selectFrom('payments')
      .select(['processor', 'processor_ref'])
      .where('id', '=', refund.payment_id)
      .executeTakeFirstOrThrow()
    requireProcessor(processor, payment.processor)
    if (refund.processor_ref !== null) return await processor.readRefund(refund.processor_ref)
    return await processor.createRefund({
      idempotencyKey: `refund:${refund.id}`,
      begunAt: refund.created_at,
      ref: payment.processor_ref!,
      amount: refund.amount,
      metadata: { refund_id: refund.id, order_id: refund.order_id },
    })
  } catch (error) {
    if (error instanceof ProcessorUnavailable) await markInDoubt(context, refund)
    throw error
  }
}

/** Nobody knows whether it was done: asked for once more, by whomever, it goes on under the same key. */
async function markInDoubt({ db }: CloudContext, { id }: RefundRow): Promise<void> {
  await db.kysely
    .updateTable('refunds')
    .set({ is_in_doubt: 1 })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .execute()
}

function readRefund({ db }: CloudContext, refundId: number): Promise<RefundRow> {
  return db.kysely.selectFrom('refunds').selectAll().where('id', '=', refundId).executeTakeFirstOrThrow()
}

/** Refunds that wait for the processor, and those that it refused and the service owes. */
export const refundWork = (services: MoneyServices): WorkKinds => ({
  refund: {
    backoff: { firstMs: services.context.settings.paymentRecheckMs, maxMs: MAX_PAUSE_MS },
    async look({ subject }) {
      const { context } = services
      const refund = await context.db.kysely
        .selectFrom('refunds')
        .selectAll()
        .where('id', '=', Number(subject))
        .executeTakeFirst()
      if (refund?.status === 'pending') await executeRefund(services, refund.id)
      if (refund?.status === 'failed') await context.db.transact((tx) => replaceRefused(tx, context, refund))
      // Whatever is to be done later has been made due with the refund's outcome.
      return done
    },
  },
})

const MAX_PAUSE_MS = 3_600_000
