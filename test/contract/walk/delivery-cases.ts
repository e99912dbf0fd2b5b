import type { Call, RouteCases } from './call.ts'
import { cart, paid, othersOrder } from './consumer-cases.ts'
import type { World } from './world.ts'

/** Ada's order, ready in bin 1. */
async function ready(world: World): Promise<Call> {
  const call = await paid(world)
  const { order_id } = call.params
  await world.shop.report({ kind: 'order.preparing', order_id, bins: [1] })
  const items = await world.shop.context.db.kysely.selectFrom('order_items').select(['id', 'qty']).execute()
  const lines = items.map(({ id, qty }) => ({ line_id: id, dropped: qty, doubtful: 0, bins: [1] }))
  await world.shop.report({ kind: 'order.ready', order_id, bins: [1], lines })
  return call
}

/** C §4.2: the delivery of an order. */
export const deliveryCases = {
  'consumer.orders.delete': {
    success: cart,
    errors: {
      order_not_found: othersOrder,
      order_not_deletable: ready,
    },
    elsewhere: {
      order_state_conflict: 'test/cloud/commerce/orders/cart.test.ts',
      processor_unavailable: 'test/cloud/commerce/orders/cart.test.ts',
    },
  },
  'consumer.orders.open_delivery': {
    async success(world) {
      const call = await ready(world)
      await world.connectHub()
      return call
    },
    errors: {
      order_not_found: othersOrder,
      order_not_ready: paid,
      hub_offline: ready,
      async bin_not_in_order(world) {
        const call = await ready(world)
        return { ...call, query: { ...call.query, bin_num: 3 } }
      },
    },
    elsewhere: {
      hardware_error: 'test/cloud/operations/controls/open-delivery.test.ts',
      order_state_conflict: 'test/cloud/operations/controls/open-delivery.test.ts',
    },
  },
} satisfies Record<string, RouteCases>
