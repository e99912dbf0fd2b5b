import { refundItem, refundOrder } from '../../cloud/commerce/refunds/refund-requests.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { ask, retryCall, type CustomerWorld } from './customer-calls.ts'
import { PRODUCTS, productOf } from './hardware.ts'

const isOwners = { mayTouch: () => Promise.resolve(true), actor: 'owner' }

/** An owner who returns money for orders that are over: a unit was damaged, or a customer has complained. */
export async function liveOwner(world: CustomerWorld): Promise<void> {
  const { chance } = world
  while (world.isOpen()) {
    await world.sleep(chance.between(20_000, 120_000))
    if (!world.isOpen()) return
    const over = await ask(world, ({ context }) =>
      context.db.kysely
        .selectFrom('orders')
        .select(['id', 'hub_id'])
        .where('processing_status', '=', OrderStatus.COMPLETED)
        .orderBy('id')
        .execute(),
    )
    if (over.kind !== 'ok' || over.value.length === 0) continue
    const { id: orderId, hub_id: hubId } = chance.pick(over.value)
    if (chance.happens(0.5)) await returnUnits(world, { orderId, hubId })
    else await returnMoney(world, orderId)
  }
}

/** Refunds an order, whole or in part. */
export async function returnMoney(world: CustomerWorld, orderId: number): Promise<void> {
  const { chance, coverage } = world
  const amount = chance.happens(0.5) ? chance.between(1, 300) : undefined
  const refunded = await retryCall(world, (cloud) => refundOrder(cloud, { ...isOwners, orderId, amount }))
  coverage.hit(`owner refunds: ${refunded.kind === 'refused' ? refunded.code : refunded.kind}`)
}

/** Refunds units of a product that the order may hold. */
export async function returnUnits(
  world: CustomerWorld,
  { orderId, hubId }: { orderId: number; hubId: number },
): Promise<void> {
  const { chance, coverage } = world
  const request = {
    ...isOwners,
    orderId,
    productId: productOf(hubId, chance.between(1, PRODUCTS)),
    quantity: chance.between(1, 2),
    requestKey: `line-${chance.between(1, 1_000_000_000)}`,
  }
  const refunded = await retryCall(world, (cloud) => refundItem(cloud, request))
  coverage.hit(`owner refunds a line: ${refunded.kind === 'refused' ? refunded.code : refunded.kind}`)
}
