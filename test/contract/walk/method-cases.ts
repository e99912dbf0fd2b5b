import type { Call, RouteCases } from './call.ts'
import { consumerPaymentCases } from './consumer-cases.ts'
import type { World } from './world.ts'

const ada = { customer: 'ada' } as const

/** A saved card of Ada; returns its id. */
async function saved(world: World): Promise<string> {
  await world.user('ada')
  const method = { payment_method_id: 'pm_card_visa' }
  const { json } = await world.customer('ada', 'POST', '/users/payments/save-payment-method', method)
  return (json as { payment_method_id: string }).payment_method_id
}

const toSave =
  (payment_method_id: string) =>
  async (world: World): Promise<Call> => {
    await world.user('ada')
    return { as: ada, body: { payment_method_id, set_default: true } }
  }

async function toDelete(world: World): Promise<Call> {
  return { as: ada, params: { payment_method_id: await saved(world) } }
}

/** A mobile wallet pays like a card, and is refused like a card. */
function byWallet(): RouteCases {
  const { success, errors, elsewhere } = consumerPaymentCases['consumer.payments.pay']
  const shared = Object.entries(errors).filter(([code]) => code !== 'external_payments_disabled')
  const withToken =
    (prepare: (world: World) => Promise<Call>, token?: string) =>
    async (world: World): Promise<Call> => {
      const call = await prepare(world)
      const { payment_method_id, ...body } = call.body!
      return { ...call, body: { ...body, wallet_token: token ?? payment_method_id } }
    }
  return {
    success: withToken(success, 'tok_visa'),
    errors: {
      ...Object.fromEntries(shared.map(([code, prepare]) => [code, withToken(prepare)])),
      payment_method_not_found: withToken(success, 'tok_unknown'),
      card_declined: withToken(success, 'tok_chargeDeclined'),
    },
    elsewhere,
  }
}

/** C §4.4. */
export const paymentMethodCases = {
  'consumer.payments.setup_intent': {
    async success(world) {
      await world.user('ada')
      return { as: ada }
    },
    elsewhere: { processor_unavailable: 'test/cloud/commerce/payments/methods.test.ts' },
  },
  'consumer.payments.save_method': {
    success: toSave('pm_card_mastercard'),
    errors: {
      payment_method_not_found: toSave('pm_card_unknown'),
      card_declined: toSave('pm_card_chargeDeclined'),
    },
    elsewhere: { processor_unavailable: 'test/cloud/commerce/payments/methods.test.ts' },
  },
  'consumer.payments.methods': {
    async success(world) {
      await saved(world)
      return { as: ada }
    },
  },
  'consumer.payments.delete_method': {
    success: toDelete,
    errors: {
      async payment_method_not_found(world) {
        const call = await toDelete(world)
        await world.user('eve')
        return { ...call, as: { customer: 'eve' } }
      },
    },
  },
  'consumer.payments.platform_a_pay': byWallet(),
  'consumer.payments.platform_b_pay': byWallet(),
} satisfies Record<string, RouteCases>
