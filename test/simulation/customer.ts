import { createOrder, setItem } from '../../cloud/commerce/orders/cart.ts'
import { deleteOrder } from '../../cloud/commerce/fulfilment/delete-order.ts'
import { confirmPayment } from '../../cloud/commerce/payments/confirm.ts'
import { confirmClaim } from '../cloud/support/confirm-claim.ts'
import { pay } from '../../cloud/commerce/payments/pay.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { ABSENT_MS } from './blows.ts'
import { ask, retryCall, type CustomerWorld } from './customer-calls.ts'
import { announceDeals } from './deals.ts'
import { PRODUCTS, productOf } from './hardware.ts'
import { returnMoney, returnUnits } from './owner.ts'
import type { Site } from './stage.ts'
import { debit, topUp } from './wallet-customer.ts'

/** A customer who sometimes comes, buys, and sometimes behaves badly. */
export async function liveCustomer(world: CustomerWorld, userId: number): Promise<void> {
  const { chance, coverage } = world
  while (world.isOpen()) {
    await world.sleep(chance.between(0, 60_000))
    if (!world.isOpen()) return
    const ended = await buyOnce(world, userId)
    coverage.hit(`customer ${ended}`)
  }
}

/** One visit of a customer. Returns how it ended. */
export async function buyOnce(world: CustomerWorld, userId: number): Promise<string> {
  const { chance } = world
  const site = chance.pick(world.sites)
  const { hubId } = site
  const created = await retryCall(world, ({ context }) => createOrder(context, { userId, hubId }))
  if (created.kind !== 'ok') return `cart ${created.kind === 'refused' ? created.code : created.kind}`
  const orderId = created.value.id
  if (chance.happens(0.3)) await topUp(world, userId)
  const key = { userId, orderId, hubId }
  if (created.value.processing_status === OrderStatus.NEW) {
    for (let line = chance.between(1, 3); line > 0; line--) {
      const change = { productId: chance.pick(shelfOf(hubId)), quantity: chance.between(1, 3) }
      const set = await retryCall(world, ({ context }) => setItem(context, key, change))
      if (set.kind === 'refused') world.coverage.hit(`customer item ${set.code}`)
    }
    if (chance.happens(0.15)) await announceDeals(world, key)
    if (chance.happens(0.05)) return 'left the cart behind'
    const paid = await payFor(world, key)
    if (paid !== undefined) return paid
  }
  if (chance.happens(0.08)) {
    const deleted = await retryCall(world, (cloud) => deleteOrder(cloud, key, `user ${userId}`))
    world.coverage.hit(`customer cancels: ${deleted.kind === 'refused' ? deleted.code : deleted.kind}`)
  }
  if (chance.happens(0.06)) await returnUnits(world, key)
  if (chance.happens(0.05)) await returnMoney(world, orderId)
  return collect(world, orderId, site)
}

const shelfOf = (hubId: number): number[] =>
  Array.from({ length: PRODUCTS }, (_, index) => productOf(hubId, index + 1))

type Key = { userId: number; orderId: number; hubId: number }

/** The reason why the visit ended; undefined if the order is in progress. */
async function payFor(world: CustomerWorld, { userId, orderId, hubId }: Key): Promise<string | undefined> {
  const { chance } = world
  if (chance.happens(0.3)) {
    const { isDecided, ended } = await debit(world, { userId, orderId })
    if (isDecided) return ended
  }
  const draw = chance.fraction()
  const method =
    draw < 0.7
      ? 'pm_card_visa'
      : draw < 0.76
        ? 'pm_card_chargeDeclined'
        : draw < 0.86
          ? 'pm_card_authenticationRequired'
          : draw < 0.9
            ? 'pm_card_refundFail'
            : draw < 0.93
              ? 'pm_card_pendingRefund'
              : 'external'
  const paid = await retryCall(world, (cloud) => pay(cloud, { userId, orderId, method }))
  if (paid.kind === 'refused') return `pay ${paid.code}`
  if (paid.kind === 'silence') return 'pay silence'
  const { status, payment_id, next_action } = paid.value
  if (status !== 'requires_action') return undefined
  if (chance.happens(0.3)) return 'abandoned the payment'
  // Some customers return when their order has long been a cart again.
  await world.sleep(chance.happens(0.15) ? chance.between(60_000, 240_000) : chance.between(500, 20_000))
  if (method === 'external') {
    const { bin_number: bin } = next_action as { bin_number: number }
    await retryCall(world, ({ context }) => confirmClaim(context, { hubId, bin, key: 'integrator' }))
  } else {
    await retryCall(world, (cloud) => confirmPayment(cloud, { userId, orderId, paymentId: payment_id }))
  }
  return undefined
}

/** A hub that stays away reports an order that it has begun only when it returns. */
const PATIENCE_MS = ABSENT_MS + 15 * 60_000

/** Waits for the bins, opens them, and takes the units. */
async function collect(world: CustomerWorld, orderId: number, { hubId, room }: Site): Promise<string> {
  const { chance } = world
  const waiter = chance.happens(0.06)
  for (let waitedMs = 0; waitedMs < PATIENCE_MS;) {
    const pauseMs = chance.between(1000, 5000)
    waitedMs += pauseMs
    await world.sleep(pauseMs)
    const seen = await ask(world, ({ context }) =>
      context.db.kysely.selectFrom('orders').selectAll().where('id', '=', orderId).executeTakeFirst(),
    )
    if (seen.kind !== 'ok') continue
    if (seen.value === undefined) return 'order gone'
    const { uuid, processing_status: status, bins: binText } = seen.value
    if (status >= OrderStatus.COMPLETED || status === OrderStatus.NEW) return `ended ${status}`
    if (status < OrderStatus.READY) continue
    if (waiter) return 'never collects'
    const bins = JSON.parse(binText) as number[]
    // A restored cloud may know that the order is ready, but not its bins.
    if (bins.length === 0) continue
    await ask(world, ({ commands }) =>
      commands.send({ hubId, body: { name: 'open_delivery', order_id: uuid, bins }, actor: 'user' }),
    )
    for (const bin of bins) {
      await world.sleep(chance.between(500, 6000))
      room.hub.act({ action: 'take_items', target: `bin-${bin}` })
      if (chance.happens(0.2)) room.hub.act({ action: 'close_door', target: `bin-${bin}` })
    }
  }
  return 'leaves before the order has ended'
}
