import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { tokenOf, type AbuseWorld, type Answer } from './abuser.ts'

/** A customer with good and bad cards who wants products without paying, or money without a reason. */
export async function abuseAsCustomer(world: AbuseWorld): Promise<void> {
  const { runtime, chance, isOpen } = world
  for (let n = 0; isOpen(); n++) {
    // One person under few names: limits per customer include deleted accounts.
    await visit(world, `dishonest-${n % 3}`)
    await sleep(runtime.clock, chance.between(50, 500))
  }
}

const CARDS = [
  'pm_card_visa',
  'pm_card_createDispute',
  'pm_card_pendingRefund',
  'pm_card_refundFail',
  'pm_card_authenticationRequired',
  'pm_card_chargeDeclined',
  'pm_usBankAccount',
  'external',
] as const

async function visit(
  { ask, chance, plant, products, runtime, tally }: AbuseWorld,
  sub: string,
): Promise<void> {
  const bearer = await tokenOf(ask, sub, { email: `${sub}@example.org` })
  if (bearer === undefined) return
  const post = (name: string, path: string, body: object = {}, headers?: Record<string, string>) =>
    ask(name, { method: 'POST', path, bearer, body, ...(headers && { headers }) })
  const user = (await post('bootstrap', '/users/user/bootstrap', { device_uuid: `device-${sub}` })).body[
    'user_id'
  ]
  if (typeof user !== 'number') return
  const hub = `hub_id=${plant.hubId}`
  const orders = `/users/${user}/orders`
  const cart = await ask('cart', { method: 'POST', path: `${orders}?${hub}`, bearer })
  const order = cart.body['order_id']
  if (typeof order !== 'number') return
  const own = `${orders}/${order}`
  const item = (quantity: number): Promise<Answer> =>
    ask('item', {
      method: 'PUT',
      path: `${own}/order_item?${hub}`,
      bearer,
      body: { product_id: chance.pick(products), quantity },
    })
  const pay = (card: string): Promise<Answer> =>
    post('pay', '/users/payments/pay', { order_id: order, payment_method_id: card })
  const debit = (): Promise<Answer> => post('debit', '/users/wallet/debit', { order_id: order })
  const cancel = (): Promise<Answer> => ask('cancel', { method: 'DELETE', path: `${own}?${hub}`, bearer })
  const open = (): Promise<Answer> => post('open', `${own}/open-delivery?${hub}`)

  await item(chance.between(1, 2))
  if (chance.happens(0.3)) await item(chance.between(1, 3))
  if (chance.happens(0.3))
    await post('deposit', '/users/wallet/deposit', {
      amount_cents: 500,
      payment_method_id: chance.pick(['pm_card_visa', 'pm_card_createDispute', 'pm_card_chargeDeclined']),
    })
  // Simultaneous calls: two payments, a change of the cart, a cancellation.
  const race: readonly (() => Promise<Answer>)[] = [
    () => pay(chance.pick(CARDS)),
    () => pay(chance.pick(CARDS)),
    debit,
    debit,
    cancel,
    () => item(chance.between(0, 9)),
    open,
  ]
  await Promise.all(race.filter(() => chance.happens(0.6)).map((call) => call()))
  // Next the customer tries to get the products and a refund.
  for (let look = 0; look < 12; look++) {
    const seen = await ask('look', { method: 'GET', path: `${own}?${hub}`, bearer })
    const status = Number(seen.body['processing_status'] ?? -1)
    const name = seen.body['processing_status_name']
    tally.hit(`saw ${typeof name === 'string' ? name : (seen.code ?? 'nothing')}`)
    if (status < 0 || status === OrderStatus.NEW || status >= OrderStatus.COMPLETED) break
    await Promise.all([open, cancel].filter(() => chance.happens(0.5)).map((call) => call()))
    if (chance.happens(0.3)) await post('refund', `/api/v1/owners/orders/${order}/refund`, { amount: 1 })
    await sleep(runtime.clock, chance.between(300, 900))
  }
  if (chance.happens(0.2))
    await ask('deletes the account', { method: 'DELETE', path: '/users/user?forfeit=true', bearer })
}
