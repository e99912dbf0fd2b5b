import { applyPaymentOutcome } from './payment-outcome.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import {
  identityOf,
  processorBackoff,
  requireProcessor,
  EXTERNAL,
  type Intent,
} from '../processors/processor.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import type { MoneyServices } from '../services.ts'

/**
 * Asks the processor what becomes of a payment and applies its answer. The request is the same whenever it is made, under
 * the payment's key: `pay` makes it first, and whoever finds the payment unfinished after a crash makes it again. One that
 * the processor is known to have is asked after.
 */
export async function submitPayment(services: MoneyServices, payment: PaymentRow): Promise<void> {
  const { context, processor } = services
  await askProcessor(services, payment, () =>
    payment.processor_ref !== null
      ? processor.readIntent(payment.processor_ref)
      : processor.createIntent({
          idempotencyKey: `pay:${identityOf(payment)}`,
          begunAt: payment.created_at,
          amount: payment.amount,
          currency: context.settings.currency,
          method: payment.method,
          type: payment.type,
          customer: payment.customer_ref,
          saves: payment.saves_method === 1,
          metadata: { payment_id: identityOf(payment), order_id: payment.order_id },
        }),
  )
}

export async function confirmPaymentIntent(services: MoneyServices, payment: PaymentRow): Promise<void> {
  await askProcessor(services, payment, () => services.processor.confirmIntent(payment.processor_ref!))
}

/**
 * Ends a payment that its customer did not finish. The processor has the last word: it may have been paid meanwhile, and
 * then it is. An integrator's claim ends with the service's own word.
 */
export async function cancelPayment(services: MoneyServices, payment: PaymentRow): Promise<void> {
  const { context, processor } = services
  if (payment.processor === EXTERNAL)
    await context.db.transact((tx) => applyPaymentOutcome(tx, context, payment.id, { status: 'canceled' }))
  else await askProcessor(services, payment, () => processor.cancelIntent(payment.processor_ref!))
}

async function askProcessor(
  { context, processor }: MoneyServices,
  payment: PaymentRow,
  ask: () => Promise<Intent>,
): Promise<void> {
  requireProcessor(processor, payment.processor)
  context.checkpoint('payment.before-processor')
  const intent = await ask()
  context.checkpoint('payment.after-processor')
  await context.db.transact((tx) => applyPaymentOutcome(tx, context, payment.id, intent))
}

/** Payments that were left unfinished: a crash, a processor out of reach, a customer who has gone. */
export const paymentWork = (services: MoneyServices): WorkKinds => ({
  payment: {
    backoff: processorBackoff(services.context),
    look: ({ subject }) => lookAtPayment(services, Number(subject)),
  },
})

/** Asks after a payment whose outcome was never learned, and cancels one that its customer does not finish. */
async function lookAtPayment(services: MoneyServices, id: number): Promise<Outcome> {
  const { kysely } = services.context.db
  const payment = await kysely.selectFrom('payments').selectAll().where('id', '=', id).executeTakeFirst()
  const dueAt = payment && (await dueAtOf(services, payment))
  if (!payment || dueAt === undefined) return done
  if (dueAt > services.context.runtime.clock.now()) return { next: dueAt }
  await (payment.status === 'pending' ? submitPayment(services, payment) : cancelPayment(services, payment))
  return lookAtPayment(services, id)
}

/** When an unfinished payment is to be looked at; undefined where it has ended. */
async function dueAtOf({ context }: MoneyServices, payment: PaymentRow): Promise<number | undefined> {
  const { db, settings } = context
  if (payment.status === 'pending') return payment.updated_at + settings.paymentRecheckMs
  if (payment.status !== 'requires_action') return undefined
  const order = await db.kysely
    .selectFrom('orders')
    .select('touched_at')
    .where('id', '=', payment.order_id)
    .executeTakeFirstOrThrow()
  // The order expires then, and an integrator's claim lasts as long.
  const expiresAt = order.touched_at + settings.idleOrderMs
  if (payment.processor === EXTERNAL) return expiresAt
  return Math.min(payment.updated_at + settings.paymentAbandonMs, expiresAt)
}
