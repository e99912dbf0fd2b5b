import type { Handlers } from '../../platform/http/handler.ts'
import type { MoneyServices } from '../services.ts'
import { listMethods } from './method-rows.ts'
import { removeMethod } from './remove-method.ts'
import { saveMethod } from './save-method.ts'
import { createSetupIntent } from './setup-intent.ts'

type MethodRoutes =
  | 'consumer.payments.setup_intent'
  | 'consumer.payments.save_method'
  | 'consumer.payments.methods'
  | 'consumer.payments.delete_method'

/** C §4.4: saved payment methods. */
export function paymentMethodHandlers(services: MoneyServices): Handlers<MethodRoutes> {
  const { context, processor } = services
  return {
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
  }
}
