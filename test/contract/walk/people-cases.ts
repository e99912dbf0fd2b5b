import type { Call, RouteCases } from './call.ts'
import { retireHub, type World } from './world.ts'

const ada = { customer: 'ada' } as const
const byAda =
  (call: Omit<Call, 'as'> = {}) =>
  async (world: World): Promise<Call> => {
    await world.user('ada')
    return { as: ada, ...call }
  }
const always = (call: Call) => (): Promise<Call> => Promise.resolve(call)

const gif = Buffer.from('R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64')
const image = new File([gif], 'me.gif')

/** A customer's cart at hub 1, with items. */
async function cartOf(world: World, name: string): Promise<{ user_id: number; order_id: number }> {
  const user_id = await world.user(name)
  const created = await world.customer(name, 'POST', `/users/${user_id}/orders?hub_id=1`)
  const { order_id } = created.json as { order_id: number }
  await world.customer(name, 'PUT', `/users/${user_id}/orders/${order_id}/order_item?hub_id=1`, {
    product_id: 1,
    quantity: 1,
  })
  return { user_id, order_id }
}

const pay = (world: World, name: string, order_id: number) =>
  world.customer(name, 'POST', '/users/payments/pay', { order_id, payment_method_id: 'pm_card_visa' })

/** Ada takes over a guest's order. */
async function transfer(world: World): Promise<Call & { body: Record<string, unknown> }> {
  await world.user('ada')
  await world.customer('guest-1', 'POST', '/users/user/bootstrap/guest')
  const { user_id, order_id } = await cartOf(world, 'guest-1')
  const anonymous_token = await world.tokenOf('guest-1')
  return { as: ada, body: { anonymous_user_id: user_id, order_id, anonymous_token } }
}

const identity = async (world: World, email: string, token?: string): Promise<Call> => ({
  as: ada,
  body: { email, identity_token: token ?? (await world.tokenOf('ada')) },
})

/** C §4.3. */
export const peopleCases = {
  'consumer.users.create': {
    success: always({ as: ada, body: { first_name: 'Ada' } }),
  },
  'consumer.users.delete': {
    success: byAda(),
    errors: {
      async order_in_progress(world) {
        await pay(world, 'ada', (await cartOf(world, 'ada')).order_id)
        return { as: ada }
      },
    },
    elsewhere: {
      wallet_not_empty: 'test/cloud/people/users/delete-user.test.ts',
      processor_unavailable: 'test/cloud/people/users/delete-user.test.ts',
    },
  },
  'consumer.users.exists': { success: always({ as: ada, query: { phone_number: '+14155550100' } }) },
  'consumer.users.phone_exists': {
    success: always({ as: 'nobody', query: { phone_number: '+14155550100' } }),
  },
  'consumer.users.email_exists': { success: always({ as: 'nobody', query: { email: 'ada@example.org' } }) },
  'consumer.users.set_identity': {
    async success(world) {
      await world.user('ada')
      return identity(world, 'ada@example.org')
    },
    errors: {
      async forbidden(world) {
        await world.user('eve')
        return identity(world, 'eve@example.org')
      },
      user_not_found: (world) => identity(world, 'nobody@example.org'),
      async invalid_token(world) {
        await world.user('ada')
        return identity(world, 'ada@example.org', 'a.b.c')
      },
    },
  },
  'consumer.profile.get': { success: byAda() },
  'consumer.profile.update': { success: byAda({ body: { first_name: 'Ada' } }) },
  'consumer.profile.patch': { success: byAda({ body: { notifications: { sms: false } } }) },
  'consumer.profile.set_image': {
    success: byAda({ form: { file: image } }),
    errors: {
      payload_too_large: byAda({ form: { file: new File([gif, Buffer.alloc(5 * 1024 * 1024)], 'me.gif') } }),
      unsupported_media_type: byAda({ form: { file: new File(['<svg/>'], 'me.png') } }),
      validation_error: byAda({ form: { picture: image } }),
    },
  },
  'consumer.profile.delete_image': { success: byAda() },
  'consumer.profile.select_hub': {
    success: byAda({ params: { hub_id: 1 } }),
    errors: {
      hub_not_found: byAda({ params: { hub_id: 99 } }),
      async hub_not_accepting_orders(world) {
        await retireHub(world)
        return byAda({ params: { hub_id: 1 } })(world)
      },
    },
  },
  'consumer.profile.unselect_hub': {
    success: byAda({ params: { hub_id: 1 } }),
    errors: { hub_not_found: byAda({ params: { hub_id: 99 } }) },
  },
  'consumer.profile.default_hub': {
    success: byAda({ body: { hub_id: 1 } }),
    errors: {
      hub_not_found: byAda({ body: { hub_id: 99 } }),
      async hub_not_accepting_orders(world) {
        await retireHub(world)
        return byAda({ body: { hub_id: 1 } })(world)
      },
    },
  },
  'consumer.profile.register_push': {
    success: byAda({ body: { device_id: 'phone', push_token: 'secret', platform: 'ios' } }),
  },
  'consumer.profile.unregister_push': { success: byAda({ query: { device_id: 'phone' } }) },
} satisfies Record<string, RouteCases>

/** C §4.2, and the guest's order of C §4.3. */
export const moreOrderCases = {
  'consumer.orders.list': {
    async success(world) {
      const { user_id } = await cartOf(world, 'ada')
      return { as: ada, params: { user_id }, query: { order_processing_statuses: [0, 'QUEUED'] } }
    },
  },
  'consumer.orders.count_items': {
    async success(world) {
      const { user_id } = await cartOf(world, 'ada')
      return { as: ada, params: { user_id }, query: { hub_id: 1 } }
    },
    errors: {
      async hub_not_found(world) {
        return { as: ada, params: { user_id: await world.user('ada') }, query: { hub_id: 99 } }
      },
    },
  },
  'consumer.orders.reorder': {
    async success(world) {
      return reorder(world)
    },
    errors: {
      async order_not_found(world) {
        const call = await reorder(world)
        return { ...call, params: { ...call.params, source_order_id: 99 } }
      },
      async hub_not_found(world) {
        return { ...(await reorder(world)), query: { target_hub_id: 99 } }
      },
      async hub_not_accepting_orders(world) {
        return { ...(await reorder(world)), query: { target_hub_id: 2 } }
      },
      async order_not_editable(world) {
        const call = await reorder(world)
        await pay(world, 'ada', (await cartOf(world, 'ada')).order_id)
        return call
      },
    },
  },
  'consumer.orders.transfer': {
    success: transfer,
    errors: {
      async forbidden(world) {
        const call = await transfer(world)
        await world.user('eve')
        return { ...call, body: { ...call.body, anonymous_token: await world.tokenOf('eve') } }
      },
      async order_not_found(world) {
        const call = await transfer(world)
        return { ...call, body: { ...call.body, order_id: 99 } }
      },
      async order_already_paid(world) {
        const call = await transfer(world)
        await pay(world, 'guest-1', call.body['order_id'] as number)
        return call
      },
      async order_not_editable(world) {
        const call = await transfer(world)
        await pay(world, 'ada', (await cartOf(world, 'ada')).order_id)
        return call
      },
    },
  },
} satisfies Record<string, RouteCases>

/** Ada repeats a cancelled order. */
async function reorder(world: World) {
  const { user_id, order_id } = await cartOf(world, 'ada')
  await world.shop.context.db.kysely
    .updateTable('orders')
    .set({ processing_status: 100 })
    .where('id', '=', order_id)
    .execute()
  return { as: ada, params: { user_id, source_order_id: order_id }, query: { target_hub_id: 1 } }
}
