import { expect, test } from 'vitest'
import { Order } from '../../../../protocol/contract/consumer-orders.ts'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { setItem } from '../../../../cloud/commerce/orders/cart.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { signPayload } from '../../../../cloud/platform/http/signature.ts'
import { receiveWebhook } from '../../../../cloud/commerce/payments/webhook.ts'
import type { Tx } from '../../../../cloud/platform/store/database.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { deliver, SECRET, sendEvent } from '../../support/webhooks.ts'

const MINUTE = 60_000

/**
 * An order with an abandoned first payment (271 cents) that its customer can still complete. It continues
 * with another payment, or with none.
 */
async function abandoned(shop: Shop, again: boolean): Promise<{ id: number; ref: string }> {
  const userId = await shop.customer()
  const { id } = await shop.cart(userId, { 1: 1 })
  const method = 'pm_card_authenticationRequired'
  const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
  if (again) await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
  else {
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    shop.clock.advance(30 * MINUTE)
    await shop.work.drain()
  }
  return { id, ref }
}

/** A cart again: its payment (271 cents) failed, but its customer can still complete it. */
async function declined(shop: Shop, method = 'pm_card_authenticationRequired') {
  const userId = await shop.customer()
  const { id } = await shop.cart(userId, { 1: 1 })
  const given = await pay(shop.services, { userId, orderId: id, method })
  const ref = given.payment_id
  await sendEvent(shop, { id: 'evt_failed', type: 'payment_intent.payment_failed', object: { id: ref } })
  expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW, payment_status: 'failed' })
  const empty = () => setItem(shop.context, { userId, orderId: id }, { productId: 1, quantity: 0 })
  return { id, ref, given, empty }
}

/** The orders in the events of a type, as integrators get them. */
async function published({ context }: Shop, type: 'order.refunded' | 'payment.disputed'): Promise<Order[]> {
  const rows = await context.db.kysely.selectFrom('events').select('data').where('type', '=', type).execute()
  return rows.map(({ data }) => Order.parse(JSON.parse(data)))
}

/** The processor took the money nevertheless, and reports it. */
async function payLate(shop: Shop, ref: string, event = 'evt_late'): Promise<void> {
  await shop.bank.take(ref)
  await sendEvent(shop, { id: event, type: 'payment_intent.succeeded', object: { id: ref } })
}

const endings: Record<string, { again: boolean; status: S; end: (shop: Shop, id: number) => Promise<void> }> =
  {
    EXPIRED: { again: false, status: S.EXPIRED, end: () => Promise.resolve() },
    FAILED: {
      again: true,
      status: S.FAILED,
      end: (shop, order_id) =>
        shop.report({ kind: 'order.failed', order_id, reason: 'jam', bins: [], lines: [] }),
    },
    TIMED_OUT: {
      again: true,
      status: S.TIMED_OUT,
      end: (shop, order_id) => shop.report({ kind: 'order.timed_out', order_id, bins: [], lines: [] }),
    },
    CANCELLED: {
      again: true,
      status: S.CANCELLED,
      end: (shop, order_id) => shop.report({ kind: 'order.cancelled', order_id }),
    },
    QUEUED: { again: true, status: S.QUEUED, end: () => Promise.resolve() },
  }

onEachProcessor('late payments', (open) => {
  test.for(Object.keys(endings))(
    'a late payment for an order that is %s is recorded and refunded once, and changes nothing else',
    async (name) => {
      const { again, status, end } = endings[name]!
      const shop = await open()
      const { id, ref } = await abandoned(shop, again)
      await end(shop, id)
      await shop.work.drain()
      const before = { outbox: await shop.outbox(), order: await shop.order(id) }
      expect(before.order.processing_status).toBe(status)
      await payLate(shop, ref)
      await payLate(shop, ref, 'evt_another')
      await shop.work.drain()
      const late = (await shop.refunds(id)).filter(({ reason }) => reason === 'late_payment')
      expect(late).toMatchObject([{ amount: 271, tax: 0, status: 'succeeded' }])
      expect(await shop.payments(id)).toMatchObject([
        { processor_ref: ref, status: 'completed', is_late: 1 },
        ...(again ? [{ status: 'completed', is_late: 0 }] : []),
      ])
      expect(await shop.outbox()).toEqual(before.outbox)
      expect(await shop.order(id)).toEqual({
        ...before.order,
        version: expect.any(Number) as number,
        payment_status: again ? before.order.payment_status : 'refunded',
      })
      const intents = await shop.bank.intents()
      expect(intents.find((intent) => intent.id === ref)).toMatchObject({ amount: 271, refunded: 271 })
    },
  )

  test('a failed payment that its customer completes later is refunded, even without an event', async () => {
    const shop = await open()
    const { id, ref } = await declined(shop)
    await shop.bank.take(ref)
    await shop.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'late_payment', amount: 271, status: 'succeeded' },
    ])
    expect((await shop.order(id)).processing_status).toBe(S.NEW)
  })

  test.each(['keeps', 'empties'])(
    'late money is refunded although its customer %s the cart, and its event does not show the cart',
    async (what) => {
      const shop = await open()
      const { id, ref, empty } = await declined(shop)
      if (what === 'empties') await empty()
      await shop.bank.take(ref)
      await shop.work.drain()
      expect(await shop.refunds(id)).toMatchObject([
        { reason: 'late_payment', amount: 271, status: 'succeeded' },
      ])
      expect(await published(shop, 'order.refunded')).toMatchObject([
        { order_id: id, payment_status: 'refunded', items: [], deals: [], total_price_original: 0, total: 0 },
      ])
    },
  )

  test('a dispute of late money of a cart that its customer has emptied is booked, and raises its alarm', async () => {
    const shop = await open()
    const { id, ref, empty } = await declined(shop)
    await empty()
    await shop.bank.take(ref)
    await shop.bank.dispute(ref)
    await deliver(shop)
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([{ reason: 'dispute', amount: 271, status: 'succeeded' }])
    expect(await published(shop, 'payment.disputed')).toMatchObject([{ order_id: id, items: [], total: 0 }])
    expect(await shop.context.db.kysely.selectFrom('alarms').select(['kind', 'subject']).execute()).toEqual([
      { kind: 'payment_disputed', subject: `order ${id}` },
    ])
  })

  test('a failed payment is cancelled at the processor too, so that it cannot succeed late', async () => {
    const shop = await open()
    const { id } = await declined(shop)
    await shop.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ status: 'canceled' }])
    expect(await shop.payments(id)).toMatchObject([{ status: 'failed' }])
  })

  test('a failed payment that was at its bank, and that its customer completes later, is refunded', async () => {
    const shop = await open()
    const { ref, given } = await declined(shop, 'pm_usBankAccount')
    // With this secret its customer can try another card.
    expect(given).toMatchObject({ status: 'processing', client_secret: expect.stringContaining('secret') })
    await shop.bank.take(ref)
    await shop.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
  })

  test('a stuck payment that failed, and that its customer completes later, is refunded', async () => {
    let isAway = false
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        cancelIntent: (ref) =>
          isAway ? Promise.reject(new ProcessorUnavailable('nobody answers')) : real.cancelIntent(ref),
      }),
    })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const method = 'pm_card_authenticationRequired'
    const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
    isAway = true
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    expect(await shop.payments(id)).toMatchObject([{ status: 'canceled', given_up_at: expect.any(Number) }])
    isAway = false
    await sendEvent(shop, { id: 'evt_failed', type: 'payment_intent.payment_failed', object: { id: ref } })
    await shop.bank.take(ref)
    shop.clock.advance(30 * MINUTE)
    await shop.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
  })

  test('a late payment is not reported as a success to the customer, and nothing is delivered for it', async () => {
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        cancelIntent: () => Promise.reject(new ProcessorUnavailable('nobody answers')),
      }),
    })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const method = 'pm_card_authenticationRequired'
    const { payment_id: paymentId } = await pay(shop.services, { userId, orderId, method })
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    await payLate(shop, paymentId)
    expect(await shop.order(orderId)).toMatchObject({ processing_status: S.NEW, payment_status: 'completed' })
    expect(await confirmPayment(shop.services, { userId, orderId, paymentId })).toMatchObject({
      status: 'canceled',
      processing_status: S.NEW,
    })
  })

  test('a late payment is refunded although the order’s own refund was refused, and does not replace it', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const first = { userId, orderId: id, method: 'pm_card_authenticationRequired' }
    const { payment_id: ref } = await pay(shop.services, first)
    await pay(shop.services, { userId, orderId: id, method: shop.bank.unrefundable })
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()
    await payLate(shop, ref)
    await shop.work.drain()
    expect((await shop.refunds(id)).map(({ reason, status }) => [reason, status])).toEqual([
      ['failed', 'failed'],
      ['late_payment', 'succeeded'],
    ])
    expect((await shop.order(id)).payment_status).toBe('completed')
  })

  test('a forged or old webhook about a late payment changes nothing', async () => {
    const shop = await open()
    const { id, ref } = await abandoned(shop, false)
    const books = async () => [
      await shop.order(id),
      await shop.payments(id),
      await shop.refunds(id),
      await shop.context.db.kysely.selectFrom('processor_events').selectAll().execute(),
    ]
    const before = await books()
    const body = JSON.stringify({
      id: 'evt_forged',
      type: 'payment_intent.succeeded',
      data: { object: { id: ref } },
    })
    const now = shop.clock.now()
    const good = signPayload(body, SECRET, now)
    const forged = [
      undefined,
      signPayload(body, 'guessed', now),
      signPayload(body, SECRET, now - 301_000),
      signPayload(body, SECRET, now + 301_000),
      signPayload(`${body} `, SECRET, now),
      // Another time with the digest of this one.
      good.replace(/t=\d+/, `t=${Math.floor(now / 1000) - 1}`),
      good.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      good.slice(0, -2),
    ]
    for (const signature of forged)
      await expect(receiveWebhook(shop.context, SECRET, body, signature)).rejects.toMatchObject({
        code: 'invalid_signature',
      })
    expect(await books()).toEqual(before)
    await receiveWebhook(shop.context, SECRET, body, good)
    expect((await shop.order(id)).payment_status).toBe('completed')
  })

  test('an event and its effect are one commit: after a failed effect the event is repeated and applied', async () => {
    const shop = await open()
    const { id, ref } = await abandoned(shop, false)
    const { context } = shop
    const q = context.db.kysely
    let fails = true
    const broken = {
      ...context,
      db: {
        ...context.db,
        transact: <T>(work: (tx: Tx) => Promise<T>) =>
          context.db.transact(async (tx) => {
            const value = await work(tx)
            if (fails) throw new Error('the disk is full')
            return value
          }),
      },
    }
    const body = JSON.stringify({
      id: 'evt',
      type: 'payment_intent.succeeded',
      data: { object: { id: ref } },
    })
    const signature = signPayload(body, SECRET, shop.clock.now())
    await expect(receiveWebhook(broken, SECRET, body, signature)).rejects.toThrow('the disk is full')
    expect(await q.selectFrom('processor_events').selectAll().execute()).toEqual([])
    fails = false
    await receiveWebhook(broken, SECRET, body, signature)
    await receiveWebhook(broken, SECRET, body, signature)
    expect(await shop.refunds(id)).toHaveLength(1)
    expect(await q.selectFrom('processor_events').selectAll().execute()).toHaveLength(1)
  })
})
