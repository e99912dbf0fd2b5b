import { expect, test } from 'vitest'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { bootstrapGuest, bootstrapUser } from '../../../../cloud/people/users/bootstrap.ts'
import { deleteUser } from '../../../../cloud/people/users/delete-user.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { testMedia } from '../../support/media.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { addDeal, redemptionsOf, type Wish } from './support/shop-deals.ts'

interface Person {
  sub: string
  email?: string
  phone?: string
  device?: string
}

const claimsOf = ({ email, phone }: Person, anonymous: boolean) => ({
  email: email ?? null,
  emailVerified: email !== undefined,
  phoneNumber: phone ?? null,
  anonymous,
  role: null,
})

/** The user of a person who signs in with verified contacts. */
async function signIn(shop: Shop, person: Person): Promise<number> {
  const caller = {
    kind: 'identity',
    actor: `identity:${person.sub}`,
    identity: person.sub,
    claims: claimsOf(person, false),
  }
  const { user } = await bootstrapUser(shop.context, caller as never, {
    phone_number: '+14155550999',
    device_uuid: person.device,
  })
  return user.id
}

async function guest(shop: Shop, sub: string): Promise<number> {
  const claims = claimsOf({ sub }, true)
  const caller = { kind: 'identity', actor: `identity:${sub}`, identity: sub, claims }
  return (await bootstrapGuest(shop.context, caller as never)).user.id
}

const remove = (shop: Shop, userId: number, { sub }: Person) =>
  deleteUser(
    shop.services,
    testMedia(shop.context),
    { kind: 'user', actor: `identity:${sub}`, identity: sub, userId } as never,
    { forfeit: true },
  )

/** A user buys a unit and collects it; returns the savings of the deal. */
async function buys(shop: Shop, userId: number, { collects = true } = {}) {
  const { id } = await shop.cart(userId, { 1: 1 })
  await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
  if (collects) {
    const lines = droppedLines(await shop.items(id))
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    await shop.report({ kind: 'order.collecting', order_id: id })
    await shop.report({ kind: 'order.completed', order_id: id })
  }
  const order = await shop.order(id)
  return { id, saved: order.total_price_original! - order.total_price_discounted! }
}

const off: Wish['rewards'] = [{ type: 'AMOUNT_OFF', discount_pct_or_price: 50 }]
const limits: [string, Wish][] = [
  ['FIRST_ORDER', { triggers: [{ type: 'FIRST_ORDER' }], rewards: off }],
  ['FIRSTORDER', { rewards: off, constraints: [{ type: 'FIRSTORDER', value: '1' }] }],
  ['MAXUSES_USER', { rewards: off, constraints: [{ type: 'MAXUSES_USER', value: '1' }] }],
]

/** Two users in the database that are one person for a limit. */
const sames: [string, Person, Person][] = [
  ['an identity', { sub: 'ada', email: 'a@x.org' }, { sub: 'ada', phone: '+14155550101' }],
  ['an equal verified e-mail address', { sub: 'a1', email: 'ada@x.org' }, { sub: 'a2', email: 'ada@x.org' }],
  [
    'an equal verified phone number',
    { sub: 'a1', phone: '+14155550100' },
    { sub: 'a2', phone: '+14155550100' },
  ],
  ['a device', { sub: 'a1', device: 'phone-1' }, { sub: 'a2', device: 'phone-1' }],
]

onEachDatabase('the customer of a deal', (open) => {
  for (const [limit, deal] of limits)
    test.for(sames)(
      `the limit ${limit} counts a person who returns with %s after the account was deleted`,
      async ([, first, second]) => {
        const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
        await addDeal(shop, deal)
        const userId = await signIn(shop, first)
        expect((await buys(shop, userId)).saved).toBe(50)
        await remove(shop, userId, first)
        const again = await signIn(shop, second)
        expect(again).not.toBe(userId)
        expect((await buys(shop, again)).saved).toBe(0)
        const other = await signIn(shop, { sub: 'bob', email: 'bob@x.org', device: 'phone-2' })
        expect((await buys(shop, other)).saved).toBe(50)
      },
    )

  test('MAXUSES_DEVICE counts the device that users have stored, and a redemption names it', async () => {
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
    await addDeal(shop, { rewards: off, constraints: [{ type: 'MAXUSES_DEVICE', value: '1' }] })
    const saved: number[] = []
    for (const sub of ['a', 'b', 'c']) {
      const userId = await signIn(shop, { sub, email: `${sub}@x.org`, device: 'kiosk' })
      saved.push((await buys(shop, userId)).saved)
    }
    expect(saved).toEqual([50, 0, 0])
    expect(await redemptionsOf(shop)).toMatchObject([{ device_uuid: 'kiosk' }])
    const own = await signIn(shop, { sub: 'd', email: 'd@x.org', device: 'phone' })
    expect((await buys(shop, own)).saved).toBe(50)
  })

  test('a device still counts for a limit after its user has changed it', async () => {
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
    await addDeal(shop, { rewards: off, constraints: [{ type: 'MAXUSES_USER', value: '1' }] })
    const ada = { sub: 'ada', email: 'ada@x.org' }
    const userId = await signIn(shop, { ...ada, device: 'old' })
    expect((await buys(shop, userId)).saved).toBe(50)
    await signIn(shop, { ...ada, device: 'new' })
    const other = await signIn(shop, { sub: 'ada2', email: 'ada2@x.org', device: 'old' })
    expect((await buys(shop, other)).saved).toBe(0)
  })

  test.for(limits.slice(0, 2))('a guest never gets a deal with %s', async ([, deal]) => {
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
    await addDeal(shop, deal)
    for (const sub of ['g1', 'g2']) expect((await buys(shop, await guest(shop, sub))).saved).toBe(0)
  })

  test('a collected order still counts as an order after its full refund', async () => {
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
    await addDeal(shop, limits[0]![1])
    const ada = { sub: 'ada', email: 'ada@x.org' }
    const userId = await signIn(shop, ada)
    const { id, saved } = await buys(shop, userId)
    expect(saved).toBe(50)
    await refundOrder(shop.services, {
      orderId: id,
      mayTouch: () => Promise.resolve(true),
      actor: 'key:owner',
    })
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect((await buys(shop, userId)).saved).toBe(0)
    await remove(shop, userId, ada)
    expect((await buys(shop, await signIn(shop, ada))).saved).toBe(0)
  })

  test('an order that was opened and failed later still counts as an order', async () => {
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 50 }] })
    await addDeal(shop, limits[0]![1])
    const userId = await signIn(shop, { sub: 'ada', email: 'ada@x.org' })
    const { id } = await buys(shop, userId, { collects: false })
    const lines = droppedLines(await shop.items(id))
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    await shop.report({ kind: 'order.collecting', order_id: id })
    await shop.report({ kind: 'order.unclaimed', order_id: id })
    await refundOrder(shop.services, {
      orderId: id,
      mayTouch: () => Promise.resolve(true),
      actor: 'key:owner',
    })
    expect((await buys(shop, userId)).saved).toBe(0)
  })

  test('only digests of a deleted customer remain, and they do not contain the contact', async () => {
    const shop = await openShop(await open())
    const ada = { sub: 'auth0|ada', email: 'ada@x.org', phone: '+14155550100', device: 'phone-1' }
    await remove(shop, await signIn(shop, ada), ada)
    const marks = await shop.context.db.kysely.selectFrom('customer_marks').selectAll().execute()
    expect(marks).toHaveLength(4)
    for (const { mark } of marks) expect(mark).toMatch(/^[0-9a-f]{64}$/)
  })
})
