import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../../protocol/model/order-status.ts'
import { pay } from '../../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../../cloud/commerce/refunds/refund-requests.ts'
import { saveMethod } from '../../../../../cloud/commerce/methods/methods.ts'
import { identityOf } from '../../../../../cloud/commerce/processors/processor.ts'
import { isLongRun } from '../../../../support/long-tests.ts'
import { onStripeShop } from '../../../support/each-processor.ts'
import { droppedLines, type Shop } from '../../../../world/shop.ts'
import type { Fault, SeenCall } from '../../../support/stripe/server.ts'

const HOUR = 3_600_000
const creation = ({ method, path }: SeenCall): boolean => method === 'POST' && path === '/v1/payment_intents'
const refunding = ({ method, path }: SeenCall): boolean => method === 'POST' && path === '/v1/refunds'

async function begin(shop: Shop, method = 'pm_card_visa') {
  const userId = await shop.customer()
  const { id: orderId } = await shop.cart(userId, { 1: 2 })
  return { orderId, userId, result: pay(shop.services, { userId, orderId, method }) }
}

async function later(shop: Shop, ms: number): Promise<void> {
  shop.clock.advance(ms)
  await shop.hear()
  await shop.work.drain()
}

/** Faults in which Stripe has executed the call, or has not. */
const faults: readonly (readonly [Fault, boolean])[] = [
  ['timeout-before', false],
  ['timeout-after', true],
  ['reset-before', false],
  ['reset-after', true],
  ['limited', false],
  ['conflict', false],
]
/** A time-out takes a second. Stripe's library repeats a call once over a lost connection, and then both are the same error. */
const quickFaults = isLongRun ? faults : faults.filter(([fault]) => !fault.startsWith('timeout'))

onStripeShop('unconfirmed money operations at Stripe', (open, stripe) => {
  test.for(faults)(
    'a payment with %s is 503: it does not complete later without its customer, and charged money is refunded',
    async ([fault, isDone]) => {
      const shop = await open()
      stripe().fail(fault, creation)
      const { orderId, result } = await begin(shop)
      await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
      expect(await shop.order(orderId)).toMatchObject({
        processing_status: S.PENDING_PAYMENT,
        payment_status: 'pending',
      })
      stripe().heal()
      await later(shop, 31_000)
      // A charge is found when Stripe's search has caught up, and the order does not wait for that.
      if (isDone) await later(shop, 20 * 60_000)
      expect(await shop.order(orderId)).toMatchObject({
        processing_status: S.NEW,
        payment_status: 'canceled',
      })
      if (isDone) await later(shop, HOUR)
      expect(await shop.outbox()).toEqual([])
      expect(await shop.bank.intents()).toMatchObject([
        isDone ? { status: 'succeeded', amount: 541, refunded: 541 } : { status: 'canceled' },
      ])
      expect(await shop.payments(orderId)).toMatchObject([{ given_up_at: null }])
      expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    },
  )

  test.for(quickFaults)(
    'a payment with %s is 503: the customer’s repetition continues under its key, and is charged once',
    async ([fault]) => {
      const shop = await open()
      stripe().fail(fault, creation)
      const { orderId, userId, result } = await begin(shop)
      await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
      stripe().heal()
      await pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
      await later(shop, 31_000)
      expect(await shop.order(orderId)).toMatchObject({
        processing_status: S.QUEUED,
        payment_status: 'completed',
      })
      expect(await shop.bank.intents()).toMatchObject([{ status: 'succeeded', amount: 541, refunded: 0 }])
      const keys = new Set(
        stripe()
          .calls.filter(creation)
          .map(({ key }) => key),
      )
      expect([...keys]).toEqual([expect.stringMatching(/^[0-9a-f]{16}:payment:1\.\d+$/)])
    },
  )

  test('a request that arrives after its payment was abandoned charges no card', async () => {
    const shop = await open()
    stripe().fail('reset-before', creation)
    const { orderId, result } = await begin(shop)
    await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
    stripe().heal()
    await later(shop, 31_000)
    const [payment] = await shop.payments(orderId)
    const late = await shop.services.processor
      .createIntent({
        idempotencyKey: `payment:${identityOf(payment!)}`,
        startedAt: payment!.created_at,
        amount: payment!.amount,
        currency: 'USD',
        method: payment!.method,
        type: 'card',
        customer: null,
        saves: false,
        metadata: { payment_id: identityOf(payment!), order_id: orderId },
      })
      .catch((error: unknown) => error)
    expect(late).not.toMatchObject({ status: 'succeeded' })
    expect(await shop.bank.intents()).toMatchObject([{ status: 'canceled' }])
  })

  test('after an error of Stripe that it repeats under the key, the charge is found by its metadata and refunded', async () => {
    const shop = await open()
    stripe().fail('error-after', creation, 1)
    const { orderId, result } = await begin(shop)
    await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
    // The search does not have it yet.
    await later(shop, 60_000)
    expect((await shop.order(orderId)).processing_status).toBe(S.PENDING_PAYMENT)
    // The order waits as long as for an absent customer, and is a cart then until it expires.
    await later(shop, 20 * 60_000)
    expect((await shop.order(orderId)).processing_status).toBe(S.NEW)
    await later(shop, HOUR)
    expect(await shop.order(orderId)).toMatchObject({
      processing_status: S.EXPIRED,
      payment_status: 'refunded',
    })
    expect(await shop.outbox()).toEqual([])
    expect(await shop.bank.intents()).toMatchObject([{ amount: 541, refunded: 541 }])
    expect(stripe().calls.some(({ path }) => path === '/v1/payment_intents/search')).toBe(true)
  })

  test('an error of Stripe without a payment returns the cart in time', async () => {
    const shop = await open()
    stripe().fail('error-before', creation, 1)
    const { orderId, userId, result } = await begin(shop)
    await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
    await later(shop, 10 * 60_000)
    expect((await shop.order(orderId)).processing_status).toBe(S.PENDING_PAYMENT)
    await later(shop, 10 * 60_000)
    expect(await shop.order(orderId)).toMatchObject({ processing_status: S.NEW, payment_status: 'canceled' })
    expect(await shop.payments(orderId)).toMatchObject([{ given_up_at: expect.any(Number) }])
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    expect(await pay(shop.services, { userId, orderId, method: 'pm_card_visa' })).toMatchObject({
      status: 'succeeded',
    })
    await later(shop, 2 * HOUR)
    expect(await shop.payments(orderId)).toMatchObject([
      { status: 'canceled', given_up_at: null },
      { status: 'completed' },
    ])
    expect(await shop.bank.intents()).toHaveLength(1)
  })

  test.for([
    ['has taken', 'reset-after', 'refunded', 1],
    ['has not taken', 'reset-before', 'canceled', 0],
  ] as const)(
    'a day later, when Stripe has forgotten the key, a payment that it %s is looked up, never created again',
    async ([, fault, payment_status, count]) => {
      const shop = await open()
      stripe().fail(fault, creation)
      const { orderId, result } = await begin(shop)
      await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
      // The service is down for longer than Stripe remembers.
      stripe().heal()
      const before = stripe().calls.filter(creation).length
      await later(shop, 25 * HOUR)
      // The cart was not touched since.
      expect(await shop.order(orderId)).toMatchObject({ processing_status: S.EXPIRED, payment_status })
      expect(await shop.outbox()).toEqual([])
      expect(await shop.bank.intents()).toHaveLength(count)
      expect(stripe().calls.filter(creation)).toHaveLength(before)
    },
  )

  test('a payment that was requested shortly before Stripe forgets it gets time to be found', async () => {
    const shop = await open()
    stripe().fail('reset-before', creation)
    const { orderId, result } = await begin(shop)
    await expect(result).rejects.toMatchObject({ code: 'processor_unavailable' })
    stripe().heal()
    stripe().fail('reset-after', creation)
    await later(shop, 19.9 * HOUR)
    expect(await shop.bank.intents()).toHaveLength(1)
    stripe().heal()
    // Its search is late by an hour.
    await later(shop, 0.5 * HOUR)
    expect(await shop.payments(orderId)).toMatchObject([{ given_up_at: expect.any(Number) }])
    await later(shop, 2 * HOUR)
    expect(await shop.payments(orderId)).toMatchObject([{ status: 'canceled', given_up_at: null }])
    expect(await shop.bank.intents()).toMatchObject([{ status: 'canceled' }])
  })

  test('a payment that has waited for its bank is read, not repeated, because Stripe repeats the old state under a key', async () => {
    const shop = await open()
    const { orderId, result } = await begin(shop, 'pm_usBankAccount')
    expect(await result).toMatchObject({ status: 'processing' })
    await shop.bank.take()
    await later(shop, 31_000)
    expect((await shop.order(orderId)).processing_status).toBe(S.QUEUED)
    expect(stripe().calls.filter(creation)).toHaveLength(1)
    const lost = await open()
    stripe().fail('reset-after', creation)
    const second = await begin(lost, 'pm_usBankAccount')
    await expect(second.result).rejects.toMatchObject({ code: 'processor_unavailable' })
    stripe().heal()
    await lost.bank.take()
    await pay(lost.services, { userId: second.userId, orderId: second.orderId, method: 'pm_usBankAccount' })
    expect((await lost.order(second.orderId)).processing_status).toBe(S.QUEUED)
  })

  test.for(quickFaults)('a refund with %s is paid once', async ([fault, isDone]) => {
    const shop = await open()
    const { id: orderId } = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
    stripe().fail(fault, refunding)
    const mayTouch = () => Promise.resolve(true)
    await expect(
      refundOrder(shop.services, { orderId, mayTouch, amount: 100, actor: 'a' }),
    ).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect((await shop.bank.intents())[0]!.refunded).toBe(isDone ? 100 : 0)
    stripe().heal()
    await later(shop, HOUR)
    expect(await shop.refunds(orderId)).toMatchObject([{ status: 'succeeded', amount: 100 }])
    expect(await shop.bank.intents()).toMatchObject([{ refunded: 100 }])
    expect(await shop.bank.refunds()).toHaveLength(1)
  })

  test.for([
    ['error-after', 1],
    ['error-before', 1],
    ['timeout-after', 25],
    ['timeout-before', 25],
  ] as const)(
    'a refund with %s, and %s hours later, is found among the refunds of its payment, or made',
    async ([fault, hours]) => {
      const shop = await open()
      const { id: orderId } = await shop.paidOrder({ 1: 2 })
      // All units are delivered: the order itself is owed nothing.
      const lines = droppedLines(await shop.items(orderId))
      await shop.report(
        { kind: 'order.preparing', order_id: orderId, bins: [1] },
        { kind: 'order.ready', order_id: orderId, bins: [1], lines },
        { kind: 'order.completed', order_id: orderId },
      )
      stripe().fail(fault, refunding, 1)
      const mayTouch = () => Promise.resolve(true)
      const request = { orderId, mayTouch, amount: 100, actor: 'a' }
      await expect(refundOrder(shop.services, request)).rejects.toMatchObject({
        code: 'processor_unavailable',
      })
      await later(shop, hours * HOUR)
      // A key that was used up by an error must be forgotten by Stripe first.
      if (fault === 'error-before') await later(shop, 24 * HOUR)
      expect(await shop.refunds(orderId)).toMatchObject([{ status: 'succeeded', amount: 100 }])
      expect(await shop.bank.refunds()).toHaveLength(1)
      expect(await shop.bank.intents()).toMatchObject([{ refunded: 100 }])
    },
  )

  test('a day later a customer that Stripe has created is looked up, never created again', async () => {
    const shop = await open()
    const userId = await shop.customer()
    stripe().fail('reset-after', ({ path }) => path === '/v1/customers')
    const save = () => saveMethod(shop.services, { userId, method: 'pm_card_visa', setDefault: false })
    await expect(save()).rejects.toMatchObject({ code: 'processor_unavailable' })
    stripe().heal()
    shop.clock.advance(25 * HOUR)
    await save()
    expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
  })
})
