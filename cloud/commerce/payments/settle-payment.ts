import type { PaymentMethodType } from '../../../protocol/contract/consumer-payments.ts'
import { applyPaymentOutcome } from './payment-outcome.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import type { Intent } from '../processors/processor.ts'
import { requireProcessor } from '../processors/reach.ts'
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
          idempotencyKey: `pay:${payment.id}`,
          begunAt: payment.created_at,
          amount: payment.amount,
          currency: context.settings.currency,
          method: payment.method,
          type: payment.type,
          customer: payment.customer_ref,
          saves: payment.saves_method === 1,
          metadata: { payment_id: payment.id, order_id: payment.order_id },
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
  if (payment.processor === 'external')
    await context.db.transact((tx) =>
      applyPaymentOutcome(tx, context, payment.id, {
        ref: null,
        status: 'canceled',
        declineCode: null,
        clientSecret: null,
      }),
    )
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
