import { describe, expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { ProcessorUnavailable, type Intent } from '../../../../cloud/commerce/processors/processor.ts'
import { retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import type { ExternalPayments } from '../../../../cloud/platform/store/tables/hubs.ts'
import { confirmClaim } from '../../support/confirm-claim.ts'
import type { BankIntent } from '../../support/bank.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop, ShopOptions } from '../../../world/shop.ts'
import { MINUTE, newGuest, cartOf, claim, secondHub, cartAt } from './support/unpaid-carts.ts'

const anywhere = () => Promise.resolve(true)

const setHub = (shop: Shop, external_payments: ExternalPayments) =>
  shop.context.db.kysely.updateTable('hubs').set({ external_payments }).execute()

const products = [{ price: 100, quantity: 500 }]

onEachProcessor('unpaid orders', (open) => {
  const openWith = (options: ShopOptions = {}) => open({ products, bins: 4, ...options })

  describe('claims of integrators', () => {
    test('a claim of an integrator reserves a bin, which the order shows, and is confirmed once at that bin', async () => {
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

    test('a refund of an integrator’s payment is only a row of the ledger', async () => {
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

    test('a customer who may not claim keeps the pending card payment', async () => {
      const shop = await openWith()
      await setHub(shop, 'off')
      const cart = await cartOf(shop)
      await pay(shop.services, { ...cart, method: 'pm_card_authenticationRequired' })
      await expect(claim(shop, cart)).rejects.toMatchObject({ code: 'external_payments_disabled' })
      expect(await shop.payments(cart.orderId)).toMatchObject([{ status: 'requires_action' }])
    })

    test('a customer has one claim, for any number of allowed unpaid orders', async () => {
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

  describe('payments that the retirement of their hub has ended', () => {
    /** The operator retires the hub of an unpaid order; due work has not ended its payment yet. */
    const retired = async (method: string) => {
      const shop = await openWith()
      const cart = await cartOf(shop)
      const { payment_id: paymentId } = await pay(shop.services, { ...cart, method })
      await shop.context.db.transact((tx) =>
        retireHub(tx, shop.context, { hubId: 1, force: true, actor: 'operator' }),
      )
      return { shop, cart, paymentId }
    }
    const soldNothing = async (shop: Shop, orderId: number) => {
      await shop.work.drain()
      expect((await shop.order(orderId)).processing_status).toBe(S.NEW)
      // Some processors take the money of an authenticated payment at once.
      const kept = ({ status, amount, refunded }: BankIntent) => status !== 'canceled' && refunded < amount
      expect((await shop.bank.intents()).filter(kept)).toEqual([])
    }

    test('a card payment is canceled at its confirmation', async () => {
      const { shop, cart, paymentId } = await retired('pm_card_authenticationRequired')
      await shop.bank.approve(paymentId)
      expect(await confirmPayment(shop.services, { ...cart, paymentId })).toMatchObject({
        status: 'canceled',
        processing_status: S.NEW,
      })
      await soldNothing(shop, cart.orderId)
    })

    test('a card payment is not resumed by the same request: the retired hub refuses the order', async () => {
      const method = 'pm_card_authenticationRequired'
      const { shop, cart } = await retired(method)
      await expect(pay(shop.services, { ...cart, method })).rejects.toMatchObject({
        code: 'hub_not_accepting_orders',
      })
      await soldNothing(shop, cart.orderId)
    })

    test('a claim is not confirmed: the integrator learns it, and no payment is booked', async () => {
      const { shop, cart } = await retired('external')
      expect(await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })).toBeNull()
      await soldNothing(shop, cart.orderId)
      expect(await shop.refunds(cart.orderId)).toEqual([])
    })
  })

  const status = (state: Intent['status']) => async (ref: string) =>
    ({ ref, status: state, declineCode: null, clientSecret: null }) as Intent
  const silence = () => Promise.reject(new ProcessorUnavailable('no answer'))
  /** Every state in which an order can wait for its payment, with the processor's behaviour. */
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
    'a card at a processor that asks for the customer again and again': {
      method: 'pm_card_authenticationRequired',
      options: { wrapProcessor: (real) => ({ ...real, cancelIntent: status('requires_action') }) },
    },
    'a card at a processor that never answers': {
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
    'an unpaid order by %s holds stock and bins for at most PAYMENT_HOLD_MS, and is a cart then',
    async (name) => {
      const { method, options = {}, refused } = states[name]!
      const shop = await openWith({ onFault: () => {}, ...options })
      const cart = await cartOf(shop, 5)
      const paying = pay(shop.services, { ...cart, method })
      if (refused) await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
      else await paying
      expect(await shop.product(1)).toMatchObject({ reserved: 5 })
      // Runs in between neither end the wait early nor prolong it.
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

  test.each(['pm_card_visa', 'pm_card_authenticationRequired', 'external'])(
    'a user with an unpaid order cannot pay at another hub by %s, and the refusal names the unpaid order',
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
      // The wallet pays at once, so that nothing is unpaid.
      await expect(payFromWallet(shop.services, second)).rejects.toMatchObject({ code: 'insufficient_funds' })
      shop.clock.advance(15 * MINUTE)
      await shop.work.drain()
      await shop.hear()
      await pay(shop.services, { ...second, method })
    },
  )

  test.each([
    ['waits for its customer', 'pm_card_authenticationRequired', false],
    ['had no answer', 'pm_card_visa', true],
  ])(
    'a repeated payment that %s is refused if the caller expects another total',
    async (_, method, isLost) => {
      let isDown = isLost
      const shop = await openWith({
        wrapProcessor: (real) => ({
          ...real,
          createIntent: (request) =>
            isDown ? Promise.reject(new ProcessorUnavailable('down')) : real.createIntent(request),
        }),
      })
      const cart = await cartOf(shop)
      await pay(shop.services, { ...cart, method }).catch(() => undefined)
      isDown = false
      const total = (await shop.order(cart.orderId)).total!
      const repeated = (expectedTotal: number) => pay(shop.services, { ...cart, method, expectedTotal })
      await expect(repeated(total + 1)).rejects.toMatchObject({ code: 'total_changed', details: { total } })
      expect(await repeated(total)).toMatchObject({ amount: total })
    },
  )
})
