import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const ada = { customer: 'ada' } as const

interface AtOrder extends Call {
  as: { customer: string }
  params: { user_id: number; order_id: number }
  query: { hub_id: number }
}

/** Ada's cart at hub 1. */
export async function cart(world: World, quantities: Record<number, number> = { 1: 2 }): Promise<AtOrder> {
  const user_id = await world.user('ada')
  const created = await world.customer('ada', 'POST', `/users/${user_id}/orders?hub_id=1`)
  const { order_id } = created.json as { order_id: number }
  for (const [id, quantity] of Object.entries(quantities))
    await world.customer('ada', 'PUT', `/users/${user_id}/orders/${order_id}/order_item?hub_id=1`, {
      product_id: Number(id),
      quantity,
    })
  return { as: ada, params: { user_id, order_id }, query: { hub_id: 1 } }
}

export async function paid(world: World): Promise<AtOrder> {
  const call = await cart(world)
  const { order_id } = call.params
  await world.customer('ada', 'POST', '/users/payments/pay', { order_id, payment_method_id: 'pm_card_visa' })
  return call
}

const toPay = async (
  world: World,
  payment_method_id = 'pm_card_visa',
): Promise<Call & { body: Record<string, unknown> }> => ({
  as: ada,
  body: { order_id: (await cart(world)).params.order_id, payment_method_id },
})

const closeHub = (world: World): Promise<void> => world.shop.hear({ accepting_orders: false })
const disableBins = async (world: World): Promise<void> => {
  await world.shop.context.db.kysely.updateTable('hubs').set({ disabled_bins: '[1,2,3,4]' }).execute()
}

/** The order of another customer is not found. */
export const othersOrder = async (world: World): Promise<AtOrder> => {
  const call = await cart(world)
  return {
    ...call,
    as: { customer: 'eve' },
    params: { ...call.params, user_id: await world.user('eve') },
  }
}

/** C §4.2. */
export const consumerOrderCases = {
  'consumer.orders.create': {
    async success(world) {
      return { as: ada, params: { user_id: await world.user('ada') }, query: { hub_id: 1 } }
    },
    errors: {
      async hub_not_found(world) {
        return { as: ada, params: { user_id: await world.user('ada') }, query: { hub_id: 99 } }
      },
      async hub_not_accepting_orders(world) {
        const user_id = await world.user('ada')
        await closeHub(world)
        return { as: ada, params: { user_id }, query: { hub_id: 1 } }
      },
    },
  },
  'consumer.orders.get': { success: cart, errors: { order_not_found: othersOrder } },
  'consumer.orders.set_item': {
    async success(world) {
      return { ...(await cart(world)), body: { product_id: 2, quantity: 1 } }
    },
    errors: {
      async order_not_found(world) {
        return { ...(await othersOrder(world)), body: { product_id: 1, quantity: 1 } }
      },
      async product_not_found(world) {
        return { ...(await cart(world)), body: { product_id: 99, quantity: 1 } }
      },
      async insufficient_stock(world) {
        return { ...(await cart(world)), body: { product_id: 1, quantity: 999 } }
      },
      async order_not_editable(world) {
        return { ...(await paid(world)), body: { product_id: 1, quantity: 1 } }
      },
      async order_state_conflict(world) {
        return { ...(await cart(world)), body: { product_id: 1, quantity: 1, version: 99 } }
      },
    },
  },
  'consumer.orders.checkout_available': { success: cart, errors: { order_not_found: othersOrder } },
  'consumer.orders.events': { success: paid, errors: { order_not_found: othersOrder } },
  'consumer.orders.queue_position': { success: paid, errors: { order_not_found: othersOrder } },
} satisfies Record<string, RouteCases>

/** C §4.4. */
export const consumerPaymentCases = {
  'consumer.payments.pay': {
    success: toPay,
    errors: {
      async order_not_found(world) {
        return { as: { customer: 'eve' }, body: (await othersPayment(world)).body }
      },
      async order_already_paid(world) {
        const { params } = await paid(world)
        return { as: ada, body: { order_id: params.order_id, payment_method_id: 'pm_card_visa' } }
      },
      async order_not_editable(world) {
        const { params } = await paid(world)
        await world.shop.context.db.kysely
          .updateTable('orders')
          .set({ processing_status: 100, payment_status: 'unpaid', queued_at: null })
          .execute()
        await world.shop.context.db.kysely.deleteFrom('payments').execute()
        return { as: ada, body: { order_id: params.order_id, payment_method_id: 'pm_card_visa' } }
      },
      async total_changed(world) {
        const call = await toPay(world)
        return { ...call, body: { ...call.body, expected_total: 1 } }
      },
      async insufficient_stock(world) {
        const call = await toPay(world)
        await world.shop.context.db.kysely.updateTable('products').set({ quantity: 1 }).execute()
        return call
      },
      async hub_not_accepting_orders(world) {
        const call = await toPay(world)
        await closeHub(world)
        return call
      },
      async no_bin_available(world) {
        const call = await toPay(world)
        await disableBins(world)
        return call
      },
      async amount_too_small(world) {
        const call = await toPay(world)
        await world.shop.context.db.kysely.updateTable('products').set({ original_price: 20 }).execute()
        return call
      },
      async invalid_quantity(world) {
        const call = await toPay(world)
        await world.shop.context.db.kysely.updateTable('order_items').set({ qty: 101 }).execute()
        return call
      },
      async external_payments_disabled(world) {
        await world.shop.context.db.kysely.updateTable('hubs').set({ external_payments: 'off' }).execute()
        return toPay(world, 'external')
      },
      payment_method_not_found: (world) => toPay(world, 'pm_card_unknown'),
      card_declined: (world) => toPay(world, 'pm_card_chargeDeclined'),
    },
    elsewhere: {
      cart_empty: 'test/cloud/commerce/orders/cart.test.ts',
      order_state_conflict: 'test/cloud/commerce/payments/money.test.ts',
      payment_failed: 'test/cloud/commerce/processors/stripe/stripe.test.ts',
      processor_unavailable: 'test/cloud/commerce/payments/refused.test.ts',
    },
  },
} satisfies Record<string, RouteCases>

async function othersPayment(world: World): Promise<{ body: Record<string, unknown> }> {
  const { body } = await toPay(world)
  await world.user('eve')
  return { body }
}

/** C §4.3. */
export const consumerUserCases = {
  'consumer.users.get': {
    async success(world) {
      await world.user('ada')
      return { as: ada }
    },
  },
  'consumer.users.bootstrap': {
    success: () => Promise.resolve({ as: ada, body: { first_name: 'Ada' } }),
    errors: { hub_not_found: () => Promise.resolve({ as: ada, body: { default_hub_id: 99 } }) },
  },
  'consumer.users.bootstrap_guest': {
    success: () => Promise.resolve({ as: { customer: 'guest-1' } }),
    errors: { forbidden: () => Promise.resolve({ as: ada }) },
  },
} satisfies Record<string, RouteCases>

const product = { as: 'nobody', params: { hub_id: 1, product_id: 1 } } as const

/** C §4.7. */
export const consumerProductCases = {
  'consumer.hubs.get': {
    success: () => Promise.resolve({ as: 'nobody', params: { hub_id: 1 } }),
    errors: { hub_not_found: () => Promise.resolve({ as: 'nobody', params: { hub_id: 99 } }) },
  },
  'consumer.products.list': {
    success: () => Promise.resolve({ as: 'nobody', params: { hub_id: 1 } }),
    errors: { hub_not_found: () => Promise.resolve({ as: 'nobody', params: { hub_id: 99 } }) },
  },
  'consumer.products.get': {
    success: () => Promise.resolve(product),
    errors: {
      hub_not_found: () => Promise.resolve({ ...product, params: { hub_id: 99, product_id: 1 } }),
      product_not_found: () => Promise.resolve({ ...product, params: { hub_id: 1, product_id: 99 } }),
    },
  },
} satisfies Record<string, RouteCases>
