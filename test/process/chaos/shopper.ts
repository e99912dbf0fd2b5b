import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import type { Chance } from '../../simulation/chance.ts'
import type { ApiAnswer, ApiRequest, Client } from './client.ts'
import type { Room } from './room.ts'
import type { Tally } from './tally.ts'

export interface ShopperWorld {
  client: Client
  room: Room
  clock: Clock
  chance: Chance
  tally: Tally
  hubId: number
  products: readonly number[]
  /** API key of the owner, who is the integrator too. */
  apiKey: string
  /** Whether customers still come. */
  isOpen: () => boolean
}

interface Shopper extends ShopperWorld {
  bearer: string
  userId: number
}

/** A customer who buys again and again, with every kind of card, until the shop closes. */
export async function shop(world: ShopperWorld, name: string): Promise<void> {
  const { clock, chance, tally } = world
  while (world.isOpen()) {
    const shopper = await enter(world, name)
    const end = shopper ? await visit(shopper) : 'without an account'
    tally.hit(`visit ${end}`)
    await sleep(clock, chance.between(0, 1500))
  }
}

/**
 * Each visit signs in again, as an app does at its start: a restored cloud may not know the customer, and a
 * wrong clock may refuse the token.
 */
async function enter(world: ShopperWorld, name: string): Promise<Shopper | undefined> {
  const { client } = world
  const token = await client.withRetries({
    name: 'token',
    method: 'POST',
    path: '/demo/identity/token',
    body: { sub: name, anonymous: true },
  })
  if (token === undefined || token.status >= 400) return undefined
  const { access_token: bearer } = token.body as { access_token: string }
  const guest = await client.withRetries({
    name: 'guest',
    method: 'POST',
    path: '/users/user/bootstrap/guest',
    bearer,
  })
  if (guest === undefined || guest.status >= 400) return undefined
  const { user_id: userId } = guest.body as { user_id: number }
  return { ...world, bearer, userId }
}

/** Calls the cloud as the customer. */
const ask = (
  { client, bearer }: Shopper,
  name: string,
  method: ApiRequest['method'],
  path: string,
  body?: object,
): Promise<ApiAnswer | undefined> => client.withRetries({ name, method, path, bearer, ...(body && { body }) })

const ordersOf = ({ userId }: Shopper): string => `/users/${userId}/orders`

/** One visit; returns how it ended. */
async function visit(shopper: Shopper): Promise<string> {
  const { chance, hubId } = shopper
  const created = await ask(shopper, 'cart', 'POST', `${ordersOf(shopper)}?hub_id=${hubId}`)
  if (created?.status !== 200) return `without cart: ${created?.code ?? 'no answer'}`
  const order = created.body as Order
  if (order.processing_status === OrderStatus.NEW) {
    await fill(shopper, order.order_id)
    if (chance.happens(0.04)) return 'leaves the cart'
    const stop = await payFor(shopper, order.order_id)
    if (stop !== undefined) return stop
  }
  if (chance.happens(0.06)) await ask(shopper, 'cancel', 'DELETE', `${ordersOf(shopper)}/${order.order_id}`)
  if (chance.happens(0.06)) await refund(shopper, order.order_id)
  return collect(shopper, order.order_id)
}

async function fill(shopper: Shopper, orderId: number): Promise<void> {
  const { chance, products, hubId } = shopper
  for (let line = chance.between(1, 3); line > 0; line--) {
    const body = { product_id: chance.pick(products), quantity: chance.between(1, 2) }
    await ask(shopper, 'item', 'PUT', `${ordersOf(shopper)}/${orderId}/order_item?hub_id=${hubId}`, body)
  }
}

/** Payment methods, with their weights out of twenty. */
const METHODS = Object.entries({
  pm_card_visa: 10,
  pm_card_mastercard: 3,
  pm_card_chargeDeclined: 1,
  pm_card_authenticationRequired: 2,
  pm_usBankAccount: 1,
  pm_card_refundFail: 1,
  external: 2,
}).flatMap(([method, count]) => Array.from({ length: count }, () => method))

/** The reason why the visit ends here, if it does. */
async function payFor(shopper: Shopper, orderId: number): Promise<string | undefined> {
  const { chance, clock, client, hubId, apiKey } = shopper
  const method = chance.pick(METHODS)
  const paid = await ask(shopper, 'pay', 'POST', '/users/payments/pay', {
    order_id: orderId,
    payment_method_id: method,
  })
  // An earlier attempt for this order succeeded: the first process had died.
  if (paid?.code === 'order_already_paid') return undefined
  if (paid?.status !== 200) return `not paid: ${paid?.code ?? 'no answer'}`
  const { status, payment_id, next_action } = paid.body as PaymentResult
  if (status !== 'requires_action' || next_action === null) return undefined
  if (chance.happens(0.15)) return 'leaves the payment'
  await sleep(clock, chance.between(100, 1000))
  if (next_action.type === 'integrator_confirmation') {
    const path = `/api/v1/owners/controls/open_bin?bin=${next_action.bin_number}&hub=${hubId}`
    await client.withRetries({ name: 'integrator opens', method: 'POST', path, apiKey })
  } else {
    await ask(shopper, 'confirm', 'POST', '/users/payments/confirm-payment', {
      order_id: orderId,
      payment_intent_id: payment_id,
    })
  }
  return undefined
}

function refund({ client, chance, apiKey }: Shopper, orderId: number): Promise<ApiAnswer | undefined> {
  return client.withRetries({
    name: 'refund',
    method: 'POST',
    path: `/api/v1/owners/orders/${orderId}/refund`,
    apiKey,
    body: chance.happens(0.5) ? { amount: chance.between(1, 200) } : {},
  })
}

/** Waits for the bins, opens them and takes the units. Returns the order's final status. */
async function collect(shopper: Shopper, orderId: number): Promise<string> {
  const { chance, clock, room, hubId, tally } = shopper
  const staysAway = chance.happens(0.04)
  const end = clock.monotonic() + 150_000
  const order = `${ordersOf(shopper)}/${orderId}`
  while (clock.monotonic() < end) {
    await sleep(clock, chance.between(300, 900))
    const seen = await ask(shopper, 'look', 'GET', `${order}?hub_id=${hubId}`)
    if (seen?.status !== 200) return `order gone: ${seen?.code ?? 'no answer'}`
    const { processing_status: status, processing_status_name: name, bins } = seen.body as Order
    if (status >= OrderStatus.COMPLETED || status === OrderStatus.NEW) return `ended ${name}`
    if (status < OrderStatus.READY || staysAway) continue
    await shopper.client.once({
      name: 'open',
      method: 'POST',
      path: `${order}/open-delivery?hub_id=${hubId}`,
      bearer: shopper.bearer,
    })
    for (const bin of bins) {
      if (await room.act({ action: 'take_items', target: `bin-${bin}` })) tally.hit('also items taken')
      if (chance.happens(0.15)) await room.act({ action: 'close_door', target: `bin-${bin}` })
    }
  }
  return 'runs out of patience'
}
