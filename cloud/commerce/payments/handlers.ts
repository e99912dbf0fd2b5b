import type { UserCredential } from '../../platform/credentials/credential.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { confirmPayment } from './confirm.ts'
import { pay, payFromWallet } from './pay.ts'
import { listMethods } from '../methods/method-rows.ts'
import { createSetupIntent, removeMethod, saveMethod } from '../methods/methods.ts'
import type { MoneyServices } from '../services.ts'
import { receiveWebhook, SIGNATURE_HEADER, STRIPE_SIGNATURE_HEADER } from './webhook.ts'

type PayRoutes =
  | 'consumer.payments.pay'
  | 'consumer.payments.platform_a_pay'
  | 'consumer.payments.platform_b_pay'
  | 'consumer.payments.confirm'
  | 'consumer.payments.setup_intent'
  | 'consumer.payments.save_method'
  | 'consumer.payments.methods'
  | 'consumer.payments.delete_method'
  | 'consumer.wallet.debit'
  | 'root.webhooks.payments'

interface WalletPayment {
  network: string
  body: { order_id: number; wallet_token: string; expected_total?: number | undefined }
  credential: UserCredential
}

/** C §4.4: payments, saved payment methods, and the processor's events. */
export function paymentHandlers(
  services: MoneyServices,
  webhookSecret: string | readonly string[],
): Handlers<PayRoutes> {
  const { context, processor } = services
  const byWallet = (type: 'platform_a' | 'platform_b', { body, credential, network }: WalletPayment) =>
    pay(services, {
      userId: credential.userId,
      orderId: body.order_id,
      method: body.wallet_token,
      type,
      network,
      expectedTotal: body.expected_total,
    })
  return {
    'consumer.payments.pay': ({ body, credential, network }) =>
      pay(services, {
        userId: credential.userId,
        orderId: body.order_id,
        method: body.payment_method_id,
        saves: body.save_payment_method ?? false,
        network,
        expectedTotal: body.expected_total,
      }),
    'consumer.payments.platform_a_pay': (input) => byWallet('platform_a', input),
    'consumer.payments.platform_b_pay': (input) => byWallet('platform_b', input),
    'consumer.payments.confirm': ({ body, credential }) =>
      confirmPayment(services, {
        userId: credential.userId,
        orderId: body.order_id,
        paymentId: body.payment_intent_id,
      }),
    'consumer.payments.setup_intent': ({ credential, idempotencyKey }) =>
      createSetupIntent(services, credential.userId, idempotencyKey),
    'consumer.payments.save_method': ({ body, credential }) =>
      saveMethod(services, {
        userId: credential.userId,
        method: body.payment_method_id,
        setDefault: body.set_default ?? false,
      }),
    'consumer.payments.methods': ({ credential }) =>
      listMethods(context.db.kysely, credential.userId, processor.name),
    async 'consumer.payments.delete_method'({ params, credential }) {
      const { payment_method_id } = params
      await removeMethod(services, { userId: credential.userId, method: payment_method_id })
      return { payment_method_id, deleted: true }
    },
    'consumer.wallet.debit': ({ body, credential }) =>
      payFromWallet(services, {
        userId: credential.userId,
        orderId: body.order_id,
        expectedTotal: body.expected_total,
      }),
    async 'root.webhooks.payments'(input) {
      const signature = input.header(SIGNATURE_HEADER) ?? input.header(STRIPE_SIGNATURE_HEADER)
      await receiveWebhook(context, webhookSecret, input.rawBody, signature, processor.readEvent)
      return { received: true }
    },
  }
}
