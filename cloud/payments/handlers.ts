import type { Handlers } from '../http/handler.ts'
import { confirmPayment } from './confirm-payment.ts'
import { pay } from './pay.ts'
import type { MoneyServices } from './services.ts'
import { receiveWebhook, SIGNATURE_HEADER } from './webhook.ts'

/** C §4.4, and the processor's events (contract §12). */
export function paymentHandlers(
  services: MoneyServices,
  webhookSecret: string,
): Handlers<'consumer.payments.pay' | 'consumer.payments.confirm' | 'root.webhooks.payments'> {
  return {
    'consumer.payments.pay': ({ body, credential }) =>
      pay(services, {
        userId: credential.userId,
        orderId: body.order_id,
        method: body.payment_method_id,
        expectedTotal: body.expected_total,
      }),
    'consumer.payments.confirm': ({ body, credential }) =>
      confirmPayment(services, {
        userId: credential.userId,
        orderId: body.order_id,
        paymentId: body.payment_intent_id,
      }),
    async 'root.webhooks.payments'(input) {
      await receiveWebhook(services.context, webhookSecret, input.rawBody, input.header(SIGNATURE_HEADER))
      return { received: true }
    },
  }
}
