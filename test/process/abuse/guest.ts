import { sleep } from '../../../protocol/model/runtime.ts'
import { tokenOf, type AbuseWorld } from './abuser.ts'

/** A guest without money. Each of endless new identities reserves as much as possible and pays nothing. */
export async function abuseAsGuest(world: AbuseWorld): Promise<void> {
  const { runtime, chance, isOpen } = world
  for (let n = 0; isOpen(); n++) {
    await newGuest(world, `guest-without-money-${n}`)
    await sleep(runtime.clock, chance.between(20, 200))
  }
}

/** Payments that fail late: each reserves stock and a bin until the answer. */
const METHODS = [
  'external',
  'pm_card_authenticationRequired',
  'pm_card_chargeDeclined',
  'pm_unknown',
] as const

/** Quantities that people do not type. */
const QUANTITIES = [1, 10, 99, 100, 101, 1_000_000, -1, 0.5, '3', null] as const

async function newGuest({ ask, chance, plant, products }: AbuseWorld, sub: string): Promise<void> {
  const bearer = await tokenOf(ask, sub, { anonymous: true })
  if (bearer === undefined) return
  const guest = await ask('guest', { method: 'POST', path: '/users/user/bootstrap/guest', bearer })
  const user = guest.body['user_id']
  if (typeof user !== 'number') return
  const orders = `/users/${user}/orders`
  const hub = `hub_id=${plant.hubId}`
  const cart = await ask('cart', { method: 'POST', path: `${orders}?${hub}`, bearer })
  const order = cart.body['order_id']
  if (typeof order !== 'number') return
  for (let line = chance.between(1, 8); line > 0; line--)
    await ask('item', {
      method: 'PUT',
      path: `${orders}/${order}/order_item?${hub}`,
      bearer,
      body: { product_id: chance.pick(products), quantity: chance.pick(QUANTITIES) },
    })
  for (let tries = chance.between(1, 3); tries > 0; tries--)
    await ask('pay', {
      method: 'POST',
      path: '/users/payments/pay',
      bearer,
      body: { order_id: order, payment_method_id: chance.pick(METHODS) },
    })
  const others = chance.between(1, order + 3)
  const mischief: readonly (() => Promise<unknown>)[] = [
    () =>
      ask('open of another', { method: 'POST', path: `${orders}/${others}/open-delivery?${hub}`, bearer }),
    () => ask('own open', { method: 'POST', path: `${orders}/${order}/open-delivery?${hub}`, bearer }),
    () => ask('order of another', { method: 'GET', path: `${orders}/${others}?${hub}`, bearer }),
    () => ask('delete of another', { method: 'DELETE', path: `${orders}/${others}?${hub}`, bearer }),
    () =>
      ask('reorder of another', {
        method: 'POST',
        path: `${orders}/${others}/reorder?target_hub_id=${plant.hubId}`,
        bearer,
      }),
    () => ask('own delete', { method: 'DELETE', path: `${orders}/${order}?${hub}`, bearer }),
    () =>
      ask('open bin', {
        method: 'POST',
        path: `/api/v1/owners/controls/open_bin?bin=${chance.between(1, 4)}&hub=${plant.hubId}`,
        bearer,
      }),
    () =>
      ask('confirm', {
        method: 'POST',
        path: '/users/payments/confirm-payment',
        bearer,
        body: { order_id: order, payment_intent_id: `pi_${others}` },
      }),
    () =>
      ask('debit', {
        method: 'POST',
        path: '/users/wallet/debit',
        bearer,
        body: { order_id: order },
      }),
    () =>
      ask('deposit', {
        method: 'POST',
        path: '/users/wallet/deposit',
        bearer,
        body: { amount_cents: 50_000, payment_method_id: 'pm_card_authenticationRequired' },
      }),
    () =>
      ask('large body', {
        method: 'POST',
        path: '/users/payments/pay',
        bearer,
        body: '['.repeat(chance.between(1, 200_000)),
      }),
    () =>
      ask('transfer', {
        method: 'POST',
        path: '/users/user/transfer-anon-order',
        bearer,
        body: { anonymous_user_id: user - 1, order_id: others, anonymous_token: bearer },
      }),
    () => ask('deletes the account', { method: 'DELETE', path: '/users/user', bearer }),
  ]
  for (let tries = chance.between(1, 6); tries > 0; tries--) await chance.pick(mischief)()
}
