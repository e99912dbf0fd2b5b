import { describe, expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { createOrder, setItem } from '../../../../cloud/commerce/orders/cart.ts'
import { checkoutObstacles } from '../../../../cloud/commerce/orders/checkout.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { unpaidBounds } from '../../../../cloud/commerce/orders/unpaid.ts'
import { hubIntake } from '../../../../cloud/commerce/orders/intake.ts'
import { cartLines } from '../../../../cloud/commerce/orders/price-cart.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { ProcessorUnavailable, type Intent } from '../../../../cloud/commerce/processors/processor.ts'
import type { ExternalPayments } from '../../../../cloud/platform/store/tables/hubs.ts'
import { confirmClaim } from '../../support/confirm-claim.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop, ShopOptions } from '../../support/shop.ts'
import { hubRow } from '../../../support/hub-row.ts'

interface Cart {
  userId: number
  orderId: number
}

const anywhere = () => Promise.resolve(true)
const MINUTE = 60_000

const setHub = (shop: Shop, external_payments: ExternalPayments) =>
  shop.context.db.kysely.updateTable('hubs').set({ external_payments }).execute()

/** A user without an account. */
async function newGuest(shop: Shop): Promise<number> {
  const userId = await shop.customer()
  await shop.context.db.kysely
    .updateTable('users')
    .set({ is_anonymous: 1 })
    .where('id', '=', userId)
    .execute()
  return userId
}

const verify = (shop: Shop, userId: number) =>
  shop.context.db.kysely.updateTable('users').set({ email_verified: 1 }).where('id', '=', userId).execute()

async function cartOf(shop: Shop, units = 1, userId?: number) {
  const user = userId ?? (await shop.customer())
  return { userId: user, orderId: (await shop.cart(user, { 1: units })).id }
}

const claim = (shop: Shop, cart: { userId: number; orderId: number }) =>
  pay(shop.services, { ...cart, method: 'external' })

/** A second hub that sells like hub 1, with one product. */
async function secondHub(shop: Shop): Promise<number> {
  const q = shop.context.db.kysely
  const { id } = await q.insertInto('hubs').values(hubRow({})).returning('id').executeTakeFirstOrThrow()
  const copy = async (table: 'hub_sessions' | 'hub_bins' | 'hub_outboxes') => {
    const rows = await q.selectFrom(table).selectAll().where('hub_id', '=', 1).execute()
    for (const row of rows)
      await q
        .insertInto(table)
        .values({ ...row, hub_id: id })
        .execute()
  }
  for (const table of ['hub_sessions', 'hub_bins', 'hub_outboxes'] as const) await copy(table)
  const product = await q.selectFrom('products').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  await q
    .insertInto('products')
    .values({ ...product, id: 100, hub_id: id })
    .execute()
  await q
    .insertInto('facings')
    .values({ hub_id: id, cabinet: 1, shelf: 1, row: 1, product_id: 100, is_primary: 1, quantity: 5 })
    .execute()
  return id
}

const products = [{ price: 100, quantity: 500 }]

onEachProcessor('what is not paid', (open) => {
  const openWith = (options: ShopOptions = {}) => open({ products, bins: 4, ...options })

  describe('an integrator’s payment', () => {
    test('claims a bin, which the order shows, and is confirmed once, at that bin', async () => {
      const shop = await openWith()
      const { userId, orderId } = await cartOf(shop)
      const claimed = await claim(shop, { userId, orderId })
      expect(claimed).toMatchObject({
        status: 'requires_action',
        next_action: { type: 'integrator_confirmation', hub_id: 1, bin_number: 1 },
      })
      expect(await shop.order(orderId)).toMatchObject({ bins: '[1]', reserved_bin: 1 })
      expect(await confirmClaim(shop.context, { hubId: 1, bin: 2, key: 'k' })).toBeNull()
      await expect(
        confirmPayment(shop.services, { userId, orderId, paymentId: claimed.payment_id }),
      ).rejects.toMatchObject({ code: 'order_state_conflict' })
      expect(await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })).toBe(orderId)
      expect(await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })).toBe(orderId)
      expect(await shop.outbox()).toMatchObject([
        { order: { number: orderId, bin: 1, open_when_ready: true } },
      ])
      expect(await shop.payments(orderId)).toMatchObject([{ status: 'completed', confirmed_by_key: 'k' }])
    })

    test('two claims never get the same bin, and no claim takes the last free bin of a hub', async () => {
      const shop = await openWith()
      const carts = await Promise.all([1, 2, 3, 4, 5].map(() => cartOf(shop)))
      const claims = await Promise.allSettled(carts.map((cart) => claim(shop, cart)))
      const bins = claims.flatMap((each) =>
        each.status === 'fulfilled' && each.value.next_action?.type === 'integrator_confirmation'
          ? [each.value.next_action.bin_number]
          : [],
      )
      expect(bins.toSorted((a, b) => a - b)).toEqual([1, 2, 3])
      expect(claims.filter(({ status }) => status === 'rejected')).toMatchObject([
        { reason: { code: 'no_bin_available' } },
        { reason: { code: 'no_bin_available' } },
      ])
      // The last bin is for a customer who pays.
      await shop.paidOrder({ 1: 1 })
    })

    test('a claim that needs several bins leaves one free, too', async () => {
      const shop = await openWith()
      await expect(claim(shop, await cartOf(shop, 31))).rejects.toMatchObject({ code: 'no_bin_available' })
      await claim(shop, await cartOf(shop, 30))
    })

    test('a refund of it is a row of the ledger only', async () => {
      const shop = await openWith()
      const cart = await cartOf(shop)
      await claim(shop, cart)
      await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })
      const request = { orderId: cart.orderId, mayTouch: anywhere, actor: 'a' }
      expect(await refundOrder(shop.services, request)).toBe('refunded')
      expect(await shop.refunds(cart.orderId)).toMatchObject([{ status: 'succeeded', processor_ref: null }])
    })

    test.each([
      { setting: 'off', guest: false, user: false },
      { setting: 'customers', guest: false, user: true },
      { setting: 'everyone', guest: true, user: true },
    ] as const)(
      'the hub setting "$setting" lets a guest claim: $guest, and a user with an account: $user',
      async ({ setting, guest, user }) => {
        const shop = await openWith()
        await setHub(shop, setting)
        const isAllowed = (cart: { userId: number; orderId: number }) =>
          claim(shop, cart).then(
            () => true,
            (error: { code: string }) => (error.code === 'external_payments_disabled' ? false : error.code),
          )
        const guests = await cartOf(shop, 1, await newGuest(shop))
        expect(await isAllowed(guests)).toBe(guest)
        if (!guest) expect((await shop.order(guests.orderId)).processing_status).toBe(S.NEW)
        expect(await isAllowed(await cartOf(shop))).toBe(user)
      },
    )

    test('a customer who may not claim keeps the card payment that is under way', async () => {
      const shop = await openWith()
      await setHub(shop, 'off')
      const cart = await cartOf(shop)
      await pay(shop.services, { ...cart, method: 'pm_card_authenticationRequired' })
      await expect(claim(shop, cart)).rejects.toMatchObject({ code: 'external_payments_disabled' })
      expect(await shop.payments(cart.orderId)).toMatchObject([{ status: 'requires_action' }])
    })

    test('a customer has one claim, however many unpaid orders the service allows', async () => {
      const shop = await openWith()
      shop.context.settings.unpaidOrdersPerUser = 5
      const hubId = await secondHub(shop)
      const first = await cartOf(shop)
      await claim(shop, first)
      const second = await cartAt(shop, first.userId, hubId)
      await expect(claim(shop, { userId: first.userId, orderId: second })).rejects.toMatchObject({
        code: 'order_state_conflict',
        details: { order_id: first.orderId },
      })
    })

    test('a claim ends after five minutes: stock and bin are free, the order is a cart, and no key confirms it', async () => {
      const shop = await openWith()
      const cart = await cartOf(shop, 5)
      await claim(shop, cart)
      shop.clock.advance(5 * MINUTE - 1)
      await shop.work.drain()
      expect(await shop.product(1)).toMatchObject({ reserved: 5 })
      shop.clock.advance(1)
      await shop.work.drain()
      expect(await shop.product(1)).toMatchObject({ reserved: 0 })
      expect(await shop.order(cart.orderId)).toMatchObject({
        processing_status: S.NEW,
        payment_status: 'canceled',
        reserved_bin: null,
        bins: '[]',
      })
      expect(await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })).toBeNull()
    })
  })

  const status = (state: Intent['status']) => async (ref: string) =>
    ({ ref, status: state, declineCode: null, clientSecret: null }) as Intent
  const silence = () => Promise.reject(new ProcessorUnavailable('no answer'))
  /** Every state before "paid" in which an order can wait for its payment, and how the processor behaves in it. */
  const states: Record<string, { method: string; options?: ShopOptions; refused?: true }> = {
    'a card that its customer does not authenticate': { method: 'pm_card_authenticationRequired' },
    'a card that a processor out of reach cannot cancel': {
      method: 'pm_card_authenticationRequired',
      options: { wrapProcessor: (real) => ({ ...real, cancelIntent: silence }) },
    },
    'a card that its bank works on, and goes on working on': {
      method: 'pm_card_authenticationRequired',
      options: {
        wrapProcessor: (real) => ({
          ...real,
          createIntent: async (request) => ({ ...(await real.createIntent(request)), status: 'processing' }),
          readIntent: status('processing'),
          cancelIntent: status('processing'),
        }),
      },
    },
    'a card whose processor asks for the customer again and again': {
      method: 'pm_card_authenticationRequired',
      options: { wrapProcessor: (real) => ({ ...real, cancelIntent: status('requires_action') }) },
    },
    'a card whose processor never answers': {
      method: 'pm_card_visa',
      refused: true,
      options: {
        wrapProcessor: (real) => ({
          ...real,
          createIntent: silence,
          readIntent: silence,
          abandonIntent: silence,
        }),
      },
    },
    'an integrator’s claim': { method: 'external' },
  }

  test.each(Object.keys(states))(
    '%s holds stock and bins for at most PAYMENT_HOLD_MS, then the order is a cart',
    async (name) => {
      const { method, options = {}, refused } = states[name]!
      const shop = await openWith({ onFault: () => {}, ...options })
      const cart = await cartOf(shop, 5)
      const paying = pay(shop.services, { ...cart, method })
      if (refused) await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
      else await paying
      expect(await shop.product(1)).toMatchObject({ reserved: 5 })
      // Looks in between neither end the wait early nor prolong it.
      for (let minute = 0; minute < 15; minute += 1) {
        shop.clock.advance(MINUTE)
        await shop.work.drain()
        if (refused && minute < 10) await pay(shop.services, { ...cart, method }).catch(() => {})
      }
      expect(await shop.product(1)).toMatchObject({ reserved: 0 })
      expect(await shop.order(cart.orderId)).toMatchObject({ processing_status: S.NEW, reserved_bin: null })
    },
  )

  test('money that a bank takes after the hold is refunded and never revives the order', async () => {
    let state: Intent['status'] = 'processing'
    const shop = await openWith({
      wrapProcessor: (real) => ({
        ...real,
        createIntent: async (request) => ({ ...(await real.createIntent(request)), status: 'processing' }),
        readIntent: async (ref) =>
          state === 'processing' ? { ...(await real.readIntent(ref)), status: state } : real.readIntent(ref),
        cancelIntent: async (ref) =>
          state === 'processing'
            ? { ...(await real.readIntent(ref)), status: state }
            : real.cancelIntent(ref),
      }),
    })
    const cart = await cartOf(shop, 5)
    await pay(shop.services, { ...cart, method: 'pm_card_visa' })
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    expect((await shop.order(cart.orderId)).processing_status).toBe(S.NEW)
    state = 'succeeded'
    shop.clock.advance(10 * MINUTE)
    await shop.work.drain()
    expect(await shop.order(cart.orderId)).toMatchObject({
      processing_status: S.NEW,
      payment_status: 'refunded',
    })
    expect(await shop.refunds(cart.orderId)).toMatchObject([{ reason: 'late_payment', status: 'succeeded' }])
    expect(await shop.product(1)).toMatchObject({ reserved: 0 })
  })

  const cartAt = async (shop: Shop, userId: number, hubId: number): Promise<number> => {
    const { id } = await createOrder(shop.context, { userId, hubId })
    await setItem(shop.context, { userId, orderId: id }, { productId: 100, quantity: 1 })
    return id
  }

  test.each(['pm_card_visa', 'pm_card_authenticationRequired', 'external'])(
    'a user with an unpaid order cannot pay at another hub by %s; the refusal names the unpaid order',
    async (method) => {
      const shop = await openWith()
      const hubId = await secondHub(shop)
      const first = await cartOf(shop)
      await pay(shop.services, { ...first, method: 'pm_card_authenticationRequired' })
      const second = { userId: first.userId, orderId: await cartAt(shop, first.userId, hubId) }
      await expect(pay(shop.services, { ...second, method })).rejects.toMatchObject({
        code: 'order_state_conflict',
        details: { order_id: first.orderId },
      })
      // The wallet pays at once: it holds nothing unpaid.
      await expect(payFromWallet(shop.services, second)).rejects.toMatchObject({ code: 'insufficient_funds' })
      shop.clock.advance(15 * MINUTE)
      await shop.work.drain()
      await shop.hear()
      await pay(shop.services, { ...second, method })
    },
  )

  test('unpaid orders, however many, keep no bin from a customer who pays', async () => {
    const shop = await openWith({ bins: 2 })
    for (const method of ['pm_card_authenticationRequired', 'pm_usBankAccount'])
      for (let guest = 0; guest < 4; guest++)
        await pay(shop.services, { ...(await cartOf(shop, 1, await newGuest(shop))), method })
    await shop.paidOrder({ 1: 1 })
  })

  test.each([
    ['guests', newGuest],
    ['accounts without a verified contact', (shop: Shop) => shop.customer()],
  ] as const)(
    'unpaid orders of %s of one network reserve a limited number of units of a hub',
    async (_, newPayer) => {
      const shop = await openWith({ bins: 9 })
      shop.context.settings.unpaidUnitsPerNetwork = 20
      const method = 'pm_card_authenticationRequired'
      const payFrom = async (network: string | undefined, units: number) => {
        const cart = await cartOf(shop, units, await newPayer(shop))
        await pay(shop.services, { ...cart, method, ...(network !== undefined && { network }) })
        return cart
      }
      const first = await payFrom('203.0.113.1', 15)
      const full = { code: 'rate_limit_exceeded', status: 429, details: { share_of: 'network', most: 20 } }
      await expect(payFrom('203.0.113.1', 6)).rejects.toMatchObject(full)
      await payFrom('203.0.113.1', 5)
      await expect(payFrom('203.0.113.1', 1)).rejects.toMatchObject(full)
      expect(await shop.product(1)).toMatchObject({ reserved: 20 })
      // Other networks, and the same one at another hub, have shares of their own.
      await payFrom('203.0.113.2', 20)
      const elsewhere = await shop.customer()
      const orderId = await cartAt(shop, elsewhere, await secondHub(shop))
      await pay(shop.services, { userId: elsewhere, orderId, method, network: '203.0.113.1' })
      // A customer with a verified contact is bounded as a customer.
      const cart = await cartOf(shop, 3)
      await verify(shop, cart.userId)
      await pay(shop.services, { ...cart, method, network: '203.0.113.1' })
      // What is paid, or a cart again, counts no more; the network is forgotten.
      await deleteOrder(shop.services, first, 'user')
      expect(await shop.order(first.orderId)).toMatchObject({ payer_network: null })
      await payFrom('203.0.113.1', 10)
      shop.clock.advance(15 * MINUTE)
      await shop.work.drain()
      const kept = await shop.context.db.kysely.selectFrom('orders').select('payer_network').execute()
      expect(kept.filter(({ payer_network }) => payer_network !== null)).toEqual([])
    },
  )

  test.each(['pm_card_authenticationRequired', 'external'])(
    'a change of the method, first %s, does not prolong the hold',
    async (first) => {
      const shop = await openWith({ bins: 9 })
      const cart = await cartOf(shop, 5)
      const methods = [first, first === 'external' ? 'pm_card_authenticationRequired' : 'external'] as const
      // Each time within the time of a claim.
      for (let turn = 0; turn < 6; turn++) {
        await pay(shop.services, { ...cart, method: methods[turn % 2]! })
        shop.clock.advance(2.4 * MINUTE)
        await shop.work.drain()
        await shop.hear()
        expect(await shop.product(1)).toMatchObject({ reserved: 5 })
      }
      await pay(shop.services, { ...cart, method: methods[0] })
      shop.clock.advance((15 - 14.4) * MINUTE)
      await shop.work.drain()
      expect(await shop.product(1)).toMatchObject({ reserved: 0 })
    },
  )

  test.each([
    [
      'the wallet is empty',
      'insufficient_funds',
      (shop: Shop, cart: Cart) => payFromWallet(shop.services, cart),
    ],
    [
      'the expected total is another one',
      'total_changed',
      (shop: Shop, cart: Cart) => pay(shop.services, { ...cart, method: 'pm_card_visa', expectedTotal: 1 }),
    ],
    [
      'no bin can be claimed',
      'no_bin_available',
      async (shop: Shop, cart: Cart) => {
        await shop.paidOrder({ 1: 1 })
        return claim(shop, cart)
      },
    ],
  ] as const)(
    'the payment that is under way stays if %s for another method',
    async (_, code, payOtherwise) => {
      const shop = await openWith({ bins: 2 })
      const cart = await cartOf(shop, 5)
      await pay(shop.services, { ...cart, method: 'pm_card_authenticationRequired' })
      const before = await shop.payments(cart.orderId)
      await expect(payOtherwise(shop, cart)).rejects.toMatchObject({ code })
      expect(await shop.payments(cart.orderId)).toEqual(before)
      expect((await shop.order(cart.orderId)).processing_status).toBe(S.PENDING_PAYMENT)
      expect((await shop.items(cart.orderId)).map(({ reserved }) => reserved)).toEqual([5])
    },
  )

  test('the first unpaid order of a network may have as many units as any order', async () => {
    const shop = await openWith({ bins: 9 })
    shop.context.settings.unpaidUnitsPerNetwork = 1
    for (let count = 0; count < 2; count++) {
      const cart = await cartOf(shop, 20)
      await pay(shop.services, { ...cart, method: 'pm_card_visa', network: '203.0.113.1' })
    }
  })

  test('an order of more units than may be unpaid is refused before anything is frozen', async () => {
    const shop = await openWith({ bins: 9 })
    shop.context.settings.unpaidUnitsPerOrder = 80
    const cart = await cartOf(shop, 81)
    const intake = await hubIntake(shop.context.db.kysely, shop.context, 1)
    const lines = await cartLines(shop.context.db.kysely, cart.orderId)
    const options = { claim: false, unpaid: unpaidBounds(shop.context, { isVerified: false }, undefined) }
    expect(await checkoutObstacles(shop.context.db.kysely, lines, intake, options)).toMatchObject([
      { code: 'invalid_quantity' },
    ])
    for (const method of ['pm_card_visa', 'external'])
      await expect(pay(shop.services, { ...cart, method })).rejects.toMatchObject({
        code: 'invalid_quantity',
        details: { units: 81, most: 80 },
      })
    expect(await shop.product(1)).toMatchObject({ reserved: 0 })
    await shop.cart(cart.userId, { 1: 80 })
    await pay(shop.services, { ...cart, method: 'pm_card_visa' })
  })
})
