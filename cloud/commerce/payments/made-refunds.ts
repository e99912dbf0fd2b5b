import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { lockOrder } from '../orders/order-rows.ts'
import { processorBackoff, requireProcessor } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { findOperation, readOperation } from '../money/operations.ts'
import { findPayment } from './payment.ts'
import { followPayment, type ProcessorMove } from './processor-moves.ts'

/**
 * The processor has refused to refund a payment. Part of the money may already be refunded on behalf of books
 * that were lost since. No event reports such refunds again, so this work reads the processor's refunds.
 */
export const madeRefundWork = (services: MoneyServices): WorkKinds => ({
  'refund.made': {
    backoff: processorBackoff(services.context),
    look: ({ subject }) => followMade(services, Number(subject)),
  },
})

async function followMade({ context, processor }: MoneyServices, paymentId: number): Promise<Outcome> {
  const { db } = context
  const payment = await findPayment(db.kysely, paymentId)
  const operation = await readOperation(db.kysely, 'payment', paymentId)
  const intent = operation?.processor_ref
  if (!payment || !intent) return done
  requireProcessor(processor, payment.processor)
  const made = await processor.listRefunds(intent)
  await db.transact(async (tx) => {
    if (!(await lockOrder(tx, payment.order_id))) return
    const moves: ProcessorMove[] = []
    for (const { ref, identity, amount, status } of made) {
      if (status === 'failed' || (await findOperation(tx.q, ref, { kind: 'refund', name: identity })))
        continue
      moves.push({ ref, kind: 'refund', intent, amount, status, reason: null })
    }
    if (moves.length > 0) await followPayment(tx, context, operation, moves)
  })
  return done
}
