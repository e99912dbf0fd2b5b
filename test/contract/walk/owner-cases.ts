import type { RouteCases } from './call.ts'
import type { World } from './world.ts'

const atHub1 = (): Promise<{ as: 'owner'; query: { hub_id: number } }> =>
  Promise.resolve({ as: 'owner', query: { hub_id: 1 } })

const binOverSsh = (): Promise<{ as: 'owner'; query: { hub: number; bin: number } }> =>
  Promise.resolve({ as: 'owner', query: { hub: 1, bin: 2 } })

/** A customer's order, paid by card. */
const paid = async ({ shop }: World, method?: string): Promise<number> =>
  (await shop.paidOrder({ 1: 2, 2: 1 }, method)).id

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
} satisfies Record<string, RouteCases>
