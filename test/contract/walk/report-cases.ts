import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const asOwner = (): Promise<Call> => Promise.resolve({ as: 'owner', query: {} })

/** A key without `diag:read`, which reads the records of all owners. */
const hubsOnly = async (world: World, hubs: readonly number[] | '*' = '*') => ({
  headers: { 'X-API-Key': await world.key({ scopes: ['hubs:read'], hubs: hubs === '*' ? hubs : [...hubs] }) },
})

async function paidReceipt(world: World) {
  const user_id = await world.user('ada')
  const { id: order_id } = await world.shop.paidOrder({ 1: 1 })
  await world.shop.context.db.kysely
    .updateTable('orders')
    .set({ user_id })
    .where('id', '=', order_id)
    .execute()
  return { as: { customer: 'ada' }, params: { user_id, order_id } }
}

/** Contract, section 16. */
export const reportCases = {
  'owner.sales.report': {
    async success({ shop }: World) {
      await shop.paidOrder({ 1: 2, 2: 1 })
      return asOwner()
    },
  },
  'owner.payments.list': {
    async success({ shop }: World) {
      await shop.paidOrder({ 1: 2, 2: 1 })
      return asOwner()
    },
    errors: { invalid_cursor: async () => ({ as: 'owner', query: { cursor: 'pay_99' } }) },
  },
  'owner.restock.list': {
    success: asOwner,
    errors: { invalid_cursor: async () => ({ as: 'owner', query: { cursor: '9.1.1.1' } }) },
  },
  'owner.fleet.list': {
    success: asOwner,
    errors: { invalid_cursor: async () => ({ as: 'owner', query: { cursor: '2' } }) },
  },
  'owner.audit.read': {
    success: asOwner,
    errors: {
      invalid_cursor: async () => ({ as: 'owner', query: { cursor: '99' } }),
      hub_access_denied: async (world) => ({ as: await hubsOnly(world, [1]), query: { hub_id: 2 } }),
      hub_not_found: async (world) => ({ as: await hubsOnly(world), query: { hub_id: 2 } }),
    },
  },
  'consumer.orders.receipt': {
    success: async (world) => paidReceipt(world),
    errors: {
      async order_not_found(world) {
        const { as, params } = await paidReceipt(world)
        return { as, params: { ...params, order_id: 9999 } }
      },
      async order_state_conflict(world) {
        const user_id = await world.user('ada')
        const { id: order_id } = await world.shop.cart(user_id, { 1: 1 })
        return { as: { customer: 'ada' }, params: { user_id, order_id } }
      },
    },
  },
} satisfies Record<string, RouteCases>
