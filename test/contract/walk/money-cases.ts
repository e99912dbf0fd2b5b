import { deliver } from '../../cloud/support/webhooks.ts'
import { signPayload } from '../../../cloud/platform/http/signature.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const ada = { customer: 'ada' } as const
const asAda = async (world: World): Promise<Call> => {
  await world.user('ada')
  return { as: ada }
}

/** Credits Ada's wallet, by card and webhook. */
async function fill(world: World, amount_cents = 5000): Promise<void> {
  await world.user('ada')
  const body = { amount_cents, payment_method_id: 'pm_card_visa' }
  await world.customer('ada', 'POST', '/users/wallet/deposit', body)
  await deliver(world.shop)
  await world.shop.hear()
}

/** Ada's cart of 541 cents. */
async function cart(world: World): Promise<number> {
  const user = await world.user('ada')
  const created = await world.customer('ada', 'POST', `/users/${user}/orders?hub_id=1`)
  const { order_id } = created.json as { order_id: number }
  await world.customer('ada', 'PUT', `/users/${user}/orders/${order_id}/order_item?hub_id=1`, {
    product_id: 1,
    quantity: 2,
  })
  return order_id
}

async function toDebit(world: World): Promise<Call & { body: { order_id: number } }> {
  await fill(world)
  return { as: ada, body: { order_id: await cart(world) } }
}

async function toDeposit(world: World, payment_method_id = 'pm_card_visa'): Promise<Call> {
  await world.user('ada')
  return { as: ada, body: { amount_cents: 2500, payment_method_id } }
}

/** C §4.6. */
export const walletCases = {
  'consumer.wallet.balance': { success: asAda },
  'consumer.wallet.transactions': {
    async success(world) {
      await fill(world)
      return { as: ada }
    },
  },
  'consumer.wallet.deposit': {
    success: toDeposit,
    errors: {
      payment_method_not_found: (world) => toDeposit(world, 'pm_card_unknown'),
      card_declined: (world) => toDeposit(world, 'pm_card_chargeDeclined'),
    },
    elsewhere: {
      payment_failed: 'test/cloud/commerce/processors/stripe/stripe.test.ts',
      processor_unavailable: 'test/cloud/commerce/ledger/deposit.test.ts',
    },
  },
  'consumer.wallet.debit': {
    success: toDebit,
    errors: {
      async order_not_found(world) {
        const { body } = await toDebit(world)
        await world.user('eve')
        return { as: { customer: 'eve' }, body }
      },
      async order_already_paid(world) {
        const call = await toDebit(world)
        await world.customer('ada', 'POST', '/users/wallet/debit', call.body)
        return call
      },
      async order_not_editable(world) {
        const call = await toDebit(world)
        await world.shop.context.db.kysely.updateTable('orders').set({ processing_status: 100 }).execute()
        return call
      },
      async total_changed(world) {
        const call = await toDebit(world)
        return { ...call, body: { ...call.body, expected_total: 1 } }
      },
      async insufficient_stock(world) {
        const call = await toDebit(world)
        await world.shop.context.db.kysely.updateTable('products').set({ quantity: 1 }).execute()
        return call
      },
      async hub_not_accepting_orders(world) {
        const call = await toDebit(world)
        await world.shop.hear({ accepting_orders: false })
        return call
      },
      async no_bin_available(world) {
        const call = await toDebit(world)
        await world.shop.context.db.kysely.updateTable('hubs').set({ disabled_bins: '[1,2,3,4]' }).execute()
        return call
      },
      insufficient_funds: async (world) => ({ as: ada, body: { order_id: await cart(world) } }),
    },
    elsewhere: {
      cart_empty: 'test/cloud/commerce/orders/cart.test.ts',
      order_state_conflict: 'test/cloud/commerce/payments/money.test.ts',
      card_declined: 'test/cloud/commerce/ledger/debit.test.ts',
      payment_failed: 'test/cloud/commerce/processors/stripe/stripe.test.ts',
      processor_unavailable: 'test/cloud/commerce/ledger/debit.test.ts',
    },
  },
} satisfies Record<string, RouteCases>

/** C §4.5. */
export const loyaltyCases = {
  'consumer.loyalty.balance': { success: asAda },
  'consumer.loyalty.calculate_earnings': {
    async success(world) {
      return { ...(await asAda(world)), body: { order_total_cents: 1299 } }
    },
  },
} satisfies Record<string, RouteCases>

async function toConfirm(world: World): Promise<Call & { body: Record<string, unknown> }> {
  const order_id = await cart(world)
  const body = { order_id, payment_method_id: 'pm_card_authenticationRequired' }
  const begun = await world.customer('ada', 'POST', '/users/payments/pay', body)
  const { payment_id: payment_intent_id } = begun.json as { payment_id: string }
  return { as: ada, body: { order_id, payment_intent_id } }
}

/** C §4.4. */
export const confirmationCases = {
  'consumer.payments.confirm': {
    success: toConfirm,
    errors: {
      async order_not_found(world) {
        const { body } = await toConfirm(world)
        await world.user('eve')
        return { as: { customer: 'eve' }, body }
      },
      async not_found(world) {
        const call = await toConfirm(world)
        return { ...call, body: { ...call.body, payment_intent_id: 'pi_none' } }
      },
      async order_state_conflict(world) {
        const order_id = await cart(world)
        const body = { order_id, payment_method_id: 'external' }
        const claimed = await world.customer('ada', 'POST', '/users/payments/pay', body)
        const { payment_id } = claimed.json as { payment_id: string }
        return { as: ada, body: { order_id, payment_intent_id: payment_id } }
      },
      async card_declined(world) {
        const order_id = await cart(world)
        const body = { order_id, payment_method_id: 'pm_card_chargeDeclined' }
        const declined = await world.customer('ada', 'POST', '/users/payments/pay', body)
        const { error } = declined.json as { error: { details: { payment_id: string } } }
        return { as: ada, body: { order_id, payment_intent_id: error.details.payment_id } }
      },
    },
    elsewhere: {
      payment_failed: 'test/cloud/commerce/processors/stripe/stripe.test.ts',
      processor_unavailable: 'test/cloud/commerce/payments/refused.test.ts',
    },
  },
} satisfies Record<string, RouteCases>

function event(world: World, text: string, secret = world.webhookSecret): Call {
  const signature = signPayload(text, secret, world.shop.clock.now() + 60_000)
  return { as: 'nobody', text, headers: { 'Payment-Signature': signature } }
}
const anEvent = JSON.stringify({ id: 'evt_1', type: 'other', data: { object: { id: 'pi_1' } } })

export const webhookCases = {
  'root.webhooks.payments': {
    success: (world) => Promise.resolve(event(world, anEvent)),
    errors: {
      invalid_signature: (world) => Promise.resolve(event(world, anEvent, 'another secret')),
      invalid_json: (world) => Promise.resolve(event(world, '{"id": ')),
    },
    elsewhere: {
      payload_too_large: 'test/cloud/platform/http/bodies.test.ts',
      unsupported_media_type: 'test/cloud/platform/http/bodies.test.ts',
    },
  },
} satisfies Record<string, RouteCases>

async function sold(world: World, method?: string): Promise<number> {
  const { id } = await world.shop.paidOrder({ 1: 2, 2: 1 }, method)
  await world.shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
  return id
}

/** O §4.3. */
export const itemRefundCases = {
  'owner.orders.refund_item': {
    async success(world) {
      return { as: 'owner', params: { order_id: await sold(world), product_id: 1 }, body: { quantity: 1 } }
    },
    errors: {
      async order_not_found(world) {
        return { as: 'other-owner', params: { order_id: await sold(world), product_id: 1 } }
      },
      async product_not_in_order(world) {
        return { as: 'owner', params: { order_id: await sold(world), product_id: 99 } }
      },
      async insufficient_quantity(world) {
        const params = { order_id: await sold(world), product_id: 1 }
        return { as: 'owner', params, body: { quantity: 3 } }
      },
      async refund_failed(world) {
        const params = { order_id: await sold(world, 'pm_card_refundFail'), product_id: 1 }
        return { as: 'owner', params }
      },
      async invalid_destination(world) {
        const params = { order_id: await sold(world), product_id: 1 }
        return { as: 'owner', params, body: { refund_destination: 'Cash' } }
      },
      async order_state_conflict(world) {
        return { as: 'owner', params: { order_id: await cart(world), product_id: 1 } }
      },
    },
    elsewhere: { processor_unavailable: 'test/cloud/commerce/refunds/refund-failures.test.ts' },
  },
} satisfies Record<string, RouteCases>
