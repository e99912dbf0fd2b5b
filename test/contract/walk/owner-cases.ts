import type { RouteCases } from './call.ts'
import type { World } from './world.ts'

const atHub1 = (): Promise<{ as: 'owner'; query: { hub_id: number } }> =>
  Promise.resolve({ as: 'owner', query: { hub_id: 1 } })

const binOverSsh = (): Promise<{ as: 'owner'; query: { hub: number; bin: number } }> =>
  Promise.resolve({ as: 'owner', query: { hub: 1, bin: 2 } })

/** A customer's order, paid by card. */
const paid = async ({ shop }: World, method?: string): Promise<number> =>
  (await shop.paidOrder({ 1: 2, 2: 1 }, method)).id

/** An order with a refund that failed. */
async function failed(world: World): Promise<{ order_id: number; refund_ids: number[]; amount: number }> {
  const order_id = await paid(world, 'pm_card_refundFail')
  await world.owner('POST', `orders/${order_id}/refund`)
  await world.shop.work.drain()
  const [refund] = await world.shop.refunds(order_id)
  return { order_id, refund_ids: [refund!.id], amount: refund!.amount }
}

/** O §4.1 to §4.3. */
export const ownerCases = {
  'owner.hubs.list': { success: () => Promise.resolve({ as: 'owner' }) },
  'owner.hubs.health': { success: atHub1 },
  'owner.inventory.list': { success: atHub1 },
  'owner.controls.enable_bin_ssh': { success: binOverSsh },
  'owner.controls.disable_bin_ssh': { success: binOverSsh },
  'owner.orders.list': {
    async success(world) {
      await paid(world)
      return atHub1()
    },
    errors: {
      invalid_cursor: async () => ({ as: 'owner', query: { hub_id: 1, cursor: 99 } }),
    },
  },
  'owner.orders.get': {
    success: async (world) => ({ as: 'owner', params: { order_id: await paid(world) } }),
    errors: {
      async order_not_found(world) {
        return { as: 'other-owner', params: { order_id: await paid(world) } }
      },
    },
  },
  'owner.orders.refund': {
    async success(world) {
      return { as: 'owner', params: { order_id: await paid(world) }, body: { amount: 1 } }
    },
    errors: {
      async order_not_found(world) {
        return { as: 'other-owner', params: { order_id: await paid(world) } }
      },
      async already_refunded(world) {
        const call = { as: 'owner', params: { order_id: await paid(world) } } as const
        await world.owner('POST', `orders/${call.params.order_id}/refund`)
        return call
      },
      async refund_failed(world) {
        return { as: 'owner', params: { order_id: await paid(world, 'pm_card_refundFail') } }
      },
      async invalid_amount(world) {
        return { as: 'owner', params: { order_id: await paid(world) }, body: { amount: 1_000_000 } }
      },
      async invalid_destination(world) {
        return { as: 'owner', params: { order_id: await paid(world) }, body: { destination: 'Cash' } }
      },
    },
    elsewhere: {
      processor_unavailable: 'test/cloud/commerce/refunds/refund-failures.test.ts',
      order_state_conflict: 'test/cloud/commerce/payments/money.test.ts',
    },
  },
  'owner.orders.settle_refunds': {
    async success(world) {
      const { order_id, ...body } = await failed(world)
      return { as: 'owner', params: { order_id }, body: { ...body, reason: 'Cash' } }
    },
    errors: {
      async order_not_found(world) {
        const { order_id, ...body } = await failed(world)
        return { as: 'other-owner', params: { order_id }, body: { ...body, reason: 'Cash' } }
      },
      async order_state_conflict(world) {
        const params = { order_id: await paid(world) }
        return { as: 'owner', params, body: { refund_ids: [1], amount: 1, reason: 'Cash' } }
      },
      async invalid_amount(world) {
        const { order_id, refund_ids, amount } = await failed(world)
        const body = { refund_ids, amount: amount + 1, reason: 'Cash' }
        return { as: 'owner', params: { order_id }, body }
      },
    },
  },
} satisfies Record<string, RouteCases>
