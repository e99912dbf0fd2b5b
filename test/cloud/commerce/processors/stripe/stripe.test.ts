import { identityOf } from '../../../../../cloud/commerce/processors/processor.ts'
import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../../protocol/model/order-status.ts'
import { pay } from '../../../../../cloud/commerce/payments/pay.ts'
import { saveMethod } from '../../../../../cloud/commerce/methods/methods.ts'
import { signPayload } from '../../../../../cloud/platform/http/signature.ts'
import { createStripe } from '../../../../../cloud/commerce/processors/stripe/stripe.ts'
import { receiveWebhook } from '../../../../../cloud/commerce/payments/webhook.ts'
import { silentLog } from '../../../../../protocol/model/log.ts'
import { SECRET } from '../../../support/bank.ts'
import { onStripeShop } from '../../../support/each-processor.ts'
import type { Shop } from '../../../../world/shop.ts'
import { deliver } from '../../../support/webhooks.ts'

async function send(shop: Shop, event: object): Promise<void> {
  const body = JSON.stringify(event)
  const { context, clock, services } = shop
  const signature = signPayload(body, SECRET, clock.now())
  await receiveWebhook(context, SECRET, body, signature, services.processor.readEvent)
}

onStripeShop('data sent to Stripe', (open, stripe) => {
  test('Stripe gets the amount, the method and our numbers, and nothing about the customer’s identity', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await shop.context.db.kysely
      .updateTable('users')
      .set({ email: 'lovelace@example.org', last_name: 'Lovelace', phone_number: '+14155550100' })
      .execute()
    const { id: orderId } = await shop.cart(userId, { 1: 2 })
    await pay(shop.services, { userId, orderId, method: 'pm_card_visa', saves: true })
    const { name } = await shop.context.db.kysely
      .selectFrom('installation')
      .selectAll()
      .executeTakeFirstOrThrow()
    const posted = stripe().calls.filter(({ method }) => method === 'POST')
    expect(posted.map(({ path, key, params }) => ({ path, key, params }))).toEqual([
      {
        path: '/v1/customers',
        key: expect.stringMatching(/:customer:1\.\d+$/),
        params: {
          metadata: {
            larder: name,
            customer: expect.stringMatching(/^customer:1\.\d+$/),
            user_id: '1',
          },
        },
      },
      {
        path: '/v1/payment_intents',
        key: expect.stringMatching(/:payment:1\.\d+$/),
        params: {
          amount: '541',
          currency: 'usd',
          automatic_payment_methods: { enabled: 'true', allow_redirects: 'never' },
          metadata: {
            larder: name,
            payment_id: expect.stringMatching(/^1\.\d+$/),
            order_id: '1',
            order_uuid: (await shop.order(orderId)).uuid,
            hub_id: '1',
          },
          customer: expect.stringMatching(/^cus_/),
          setup_future_usage: 'on_session',
          payment_method: 'pm_card_visa',
          confirm: 'true',
        },
      },
      {
        path: expect.stringMatching(/^\/v1\/payment_methods\/pm_\w+\/attach$/),
        key: expect.stringMatching(/:method:1\.\d+$/),
        params: { customer: expect.stringMatching(/^cus_/) },
      },
    ])
    expect(JSON.stringify(stripe().calls)).not.toMatch(/lovelace|4155550100/i)
  })

  test('a card in a wallet is saved with its own description', async () => {
    const shop = await open()
    const userId = await shop.customer()
    for (const [wallet, type] of [
      ['apple_pay', 'platform_a'],
      ['google_pay', 'platform_b'],
      ['link', 'card'],
    ] as const) {
      const card = { outcome: 'succeeds', brand: 'visa', last4: '4242' } as const
      const { id } = stripe().books.newMethod(card, wallet)
      const saved = await saveMethod(shop.services, { userId, method: id, setDefault: false })
      expect(saved).toMatchObject({ payment_method_id: id, type })
    }
  })

  test('a payment that Stripe refuses has failed, and leaves a cart', async () => {
    const shop = await open({ products: [{ price: 40, quantity: 5 }] })
    // A currency with an unknown minimum.
    shop.context.settings.currency = 'ISK'
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    await expect(pay(shop.services, { userId, orderId, method: 'pm_card_visa' })).rejects.toMatchObject({
      code: 'payment_failed',
    })
    expect((await shop.order(orderId)).processing_status).toBe(S.NEW)
  })

  test('a payment with a key that Stripe refuses continues with the right key, and nothing is lost', async () => {
    let key = 'sk_wrong'
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        createIntent: (request) =>
          key === 'sk_wrong'
            ? createStripe({
                apiKey: key,
                url: stripe().url,
                installation: 'i',
                clock: shop.clock,
                log: silentLog,
                timeoutMs: 500,
                retries: 0,
              }).createIntent(request)
            : real.createIntent(request),
      }),
    })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    await expect(pay(shop.services, { userId, orderId, method: 'pm_card_visa' })).rejects.toMatchObject({
      code: 'processor_unavailable',
    })
    key = 'right'
    await pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
    expect((await shop.order(orderId)).processing_status).toBe(S.QUEUED)
  })

  test('two installations on one account do not confuse their payments with equal numbers', async () => {
    const shop = await open()
    const { clock } = shop
    const request = {
      idempotencyKey: 'payment:1',
      startedAt: clock.now(),
      amount: 541,
      currency: 'USD',
      method: 'pm_card_visa',
      type: 'card',
      customer: null,
      saves: false,
      metadata: { payment_id: '1.0', order_id: 1 },
    } as const
    const refs = []
    for (const installation of ['one', 'two']) {
      const processor = createStripe({
        apiKey: 'sk_test_larder',
        url: stripe().url,
        installation,
        clock,
        log: silentLog,
        timeoutMs: 500,
      })
      refs.push((await processor.createIntent(request)).ref)
    }
    expect(new Set(refs).size).toBe(2)
    clock.advance(25 * 3_600_000)
    expect(
      (
        await createStripe({
          apiKey: 'sk_test_larder',
          url: stripe().url,
          installation: 'two',
          clock,
          log: silentLog,
          timeoutMs: 500,
        }).createIntent(request)
      ).ref,
    ).toBe(refs[1])
  })

  test('the SDK retries once automatically, under the same key', async () => {
    const shop = await open()
    stripe().fail('reset-after', ({ path }) => path === '/v1/payment_intents', 1)
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    // The SDK retries a closed connection even without configured retries.
    expect(await pay(shop.services, { userId, orderId, method: 'pm_card_visa' })).toMatchObject({
      status: 'succeeded',
    })
    expect(await shop.bank.intents()).toHaveLength(1)
  })
})

onStripeShop('Stripe’s events', (open, stripe) => {
  const unpaid = async (shop: Shop) => {
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const asked = await pay(shop.services, { userId, orderId, method: 'pm_card_authenticationRequired' })
    return { orderId, ref: asked.payment_id }
  }

  test('an event of success queues the order, and an event of a failed attempt returns the cart with the issuer’s reason', async () => {
    const shop = await open()
    const first = await unpaid(shop)
    await shop.bank.approve(first.ref)
    await deliver(shop, 3)
    expect((await shop.order(first.orderId)).processing_status).toBe(S.QUEUED)
    const second = await unpaid(shop)
    stripe().books.fail(stripe().books.intent(second.ref))
    await deliver(shop, 3)
    expect(await shop.order(second.orderId)).toMatchObject({
      processing_status: S.NEW,
      payment_status: 'failed',
    })
    expect(await shop.payments(second.orderId)).toMatchObject([{ decline_code: 'generic_decline' }])
    // Its customer continues in the open form: the money is late, and is refunded.
    await shop.bank.approve(second.ref)
    await deliver(shop)
    await shop.work.drain()
    expect(await shop.refunds(second.orderId)).toMatchObject([
      { reason: 'late_payment', amount: 271, status: 'succeeded' },
    ])
  })

  test('events of other installations, of lost payments with reused numbers, and of foreign money change nothing', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    stripe().fail('timeout-before', ({ path }) => path === '/v1/payment_intents')
    await pay(shop.services, { userId, orderId, method: 'pm_card_visa' }).catch(() => {})
    const foreign = (metadata: Record<string, string>, id: string) => ({
      id,
      object: 'event',
      type: 'payment_intent.succeeded',
      data: { object: { id: `pi_${id}`, object: 'payment_intent', status: 'succeeded', metadata } },
    })
    const payment_id = identityOf((await shop.payments(orderId))[0]!)
    await send(shop, foreign({ payment_id, order_id: '1', larder: 'another' }, 'evt_1'))
    await send(shop, foreign({ payment_id }, 'evt_2'))
    await send(shop, foreign({}, 'evt_3'))
    // Before the database was restored another payment had this number.
    const { name: larder } = await shop.context.db.kysely
      .selectFrom('installation')
      .selectAll()
      .executeTakeFirstOrThrow()
    await send(shop, foreign({ payment_id: '1.1', order_id: '1', larder }, 'evt_4'))
    expect((await shop.order(orderId)).processing_status).toBe(S.PENDING_PAYMENT)
    expect(await shop.payments(orderId)).toMatchObject([{ status: 'pending', processor_ref: null }])
  })

  test.for(['payout.paid', 'customer.deleted', 'charge.succeeded', 'setup_intent.succeeded', 'v2.something'])(
    'events of other kinds (%s) are accepted, and change nothing',
    async (type) => {
      const shop = await open()
      const { orderId } = await unpaid(shop)
      const before = [await shop.order(orderId), await shop.payments(orderId)]
      await send(shop, { id: 'evt', object: 'event', type, data: { object: { object: 'x', status: 7 } } })
      await send(shop, {
        id: 'evu',
        object: 'event',
        type,
        data: { object: { id: 'po_1', object: 'payout' } },
      })
      expect([await shop.order(orderId), await shop.payments(orderId)]).toEqual(before)
    },
  )

  test('an event of a returned refund makes the service pay the owed money again', async () => {
    const shop = await open()
    const { id: orderId } = await shop.paidOrder({ 1: 2 }, 'pm_card_refundFail')
    await shop.report({ kind: 'order.failed', order_id: orderId, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()
    expect((await shop.order(orderId)).payment_status).toBe('refunded')
    await deliver(shop, 2)
    expect(await shop.refunds(orderId)).toMatchObject([
      { status: 'failed', failure_reason: 'lost_or_stolen_card' },
    ])
    expect((await shop.order(orderId)).payment_status).toBe('completed')
    shop.clock.advance(3_600_000)
    await shop.work.drain()
    await shop.work.drain()
    expect((await shop.refunds(orderId)).map(({ status }) => status)).toEqual(['failed', 'succeeded'])
    expect(await shop.bank.intents()).toMatchObject([{ refunded: 541 }])
  })
})
