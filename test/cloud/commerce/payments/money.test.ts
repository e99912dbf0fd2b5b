import { identityOf } from '../../../../cloud/commerce/processors/processor.ts'
import { describe, expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { signPayload } from '../../../../cloud/platform/http/signature.ts'
import { receiveWebhook } from '../../../../cloud/commerce/payments/webhook.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { deliver, SECRET } from '../../support/webhooks.ts'

const anywhere = () => Promise.resolve(true)

onEachProcessor('payments and their money', (open) => {
  test('a good card freezes the order, pays it once, and queues it at the hub with reserved stock', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const cart = await shop.cart(userId, { 1: 2, 2: 1 })
    const result = await pay(shop.services, {
      userId,
      orderId: cart.id,
      method: 'pm_card_visa',
      expectedTotal: 735,
    })
    expect(result).toMatchObject({
      status: 'succeeded',
      payment_status: 'completed',
      processing_status: S.QUEUED,
      amount: 735,
      next_action: null,
    })
    const order = await shop.order(cart.id)
    expect(order).toMatchObject({
      total_price_original: 699,
      total_price_discounted: 679,
      tax_total: 56,
      total: 735,
    })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 2 })
    const [entry] = await shop.outbox()
    expect(entry).toMatchObject({
      kind: 'order.queued',
      order: { number: order.id, bin: null, open_when_ready: false, hub_epoch: 'e'.repeat(32) },
    })
    await expect(
      pay(shop.services, { userId, orderId: cart.id, method: 'pm_card_visa' }),
    ).rejects.toMatchObject({
      code: 'order_already_paid',
    })
  })

  test('a total below the minimum of cards is refused before the order is frozen, and another method pays it', async () => {
    const shop = await open({
      products: [
        { price: 45, quantity: 5 },
        { price: 46, quantity: 5 },
        { price: 1, markdown: 99, quantity: 5 },
      ],
    })
    const userId = await shop.customer()
    const by = (orderId: number, method: string) => pay(shop.services, { userId, orderId, method })
    const { id } = await shop.cart(userId, { 1: 1 })
    await expect(by(id, 'pm_card_visa')).rejects.toMatchObject({
      code: 'amount_too_small',
      details: { total: 49, least: 50 },
    })
    expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW, payment_status: 'unpaid' })
    expect([await shop.payments(id), await shop.bank.intents()]).toEqual([[], []])
    expect(await by(id, 'external')).toMatchObject({ status: 'requires_action', amount: 49 })
    const enough = await shop.cart(await shop.customer(), { 2: 1 })
    expect(
      await pay(shop.services, { userId: enough.user_id, orderId: enough.id, method: 'pm_card_visa' }),
    ).toMatchObject({ status: 'succeeded', amount: 50 })
    const free = await shop.cart(await shop.customer(), { 3: 1 })
    expect(
      await pay(shop.services, { userId: free.user_id, orderId: free.id, method: 'pm_card_visa' }),
    ).toMatchObject({ status: 'succeeded', amount: 0 })
  })

  test('a declined card leaves an editable cart without a reservation, and another card pays it', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 2 })
    await expect(
      pay(shop.services, { userId, orderId: id, method: 'pm_card_chargeDeclined' }),
    ).rejects.toMatchObject({
      code: 'card_declined',
      details: { decline_code: 'generic_decline' },
    })
    expect(await shop.order(id)).toMatchObject({
      processing_status: S.NEW,
      payment_status: 'failed',
      total: null,
    })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    await shop.cart(userId, { 1: 3 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    expect(await shop.order(id)).toMatchObject({ processing_status: S.QUEUED, payment_status: 'completed' })
  })

  test('a card that needs authentication keeps the order waiting until confirm-payment completes it', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const asked = await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    expect(asked).toMatchObject({
      status: 'requires_action',
      processing_status: S.PENDING_PAYMENT,
      next_action: { type: 'authenticate', payment_intent_id: asked.payment_id },
    })
    await shop.bank.approve(asked.payment_id)
    const done = await confirmPayment(shop.services, { userId, orderId: id, paymentId: asked.payment_id })
    expect(done).toMatchObject({ status: 'succeeded', processing_status: S.QUEUED })
    expect(await confirmPayment(shop.services, { userId, orderId: id, paymentId: asked.payment_id })).toEqual(
      done,
    )
    expect(await shop.outbox()).toHaveLength(1)
  })

  test('another card may be tried while the first needs authentication, and the first is cancelled at the processor', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    expect((await shop.payments(id)).map(({ status }) => status)).toEqual(['canceled', 'completed'])
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 1 })
  })

  test('another card is refused while the bank works on a payment that cannot be cancelled', async () => {
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        cancelIntent: async (ref) => ({ ...(await real.readIntent(ref)), status: 'processing' }),
      }),
    })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    await expect(pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })).rejects.toMatchObject({
      code: 'order_state_conflict',
    })
    expect(await shop.bank.intents()).toHaveLength(1)
  })

  test('an asynchronous payment is completed by the webhook, and repeated events have no effect', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const result = await pay(shop.services, { userId, orderId: id, method: 'pm_usBankAccount' })
    expect(result).toMatchObject({ status: 'processing', payment_status: 'pending' })
    await deliver(shop, 3)
    expect(await shop.order(id)).toMatchObject({ processing_status: S.QUEUED, payment_status: 'completed' })
    await deliver(shop, 3)
    expect(await shop.outbox()).toHaveLength(1)
    expect(await shop.refunds(id)).toEqual([])
  })

  test('events of completed payments change nothing', async () => {
    const shop = await open()
    const order = await shop.paidOrder({ 1: 1 })
    const before = [await shop.order(order.id), await shop.payments(order.id)]
    expect(await deliver(shop, 2)).toHaveLength(1)
    expect([await shop.order(order.id), await shop.payments(order.id)]).toEqual(before)
  })

  test('a webhook with a wrong, old or missing signature, or an invalid body, is refused', async () => {
    const shop = await open()
    const { context, clock } = shop
    const body = JSON.stringify({
      id: 'evt',
      type: 'payment_intent.succeeded',
      data: { object: { id: 'pi' } },
    })
    const now = clock.now()
    const bad = [
      '',
      undefined,
      't=1,v1=00',
      signPayload(body, 'other', now),
      signPayload(body, SECRET, now - 301_000),
    ]
    for (const signature of bad)
      await expect(receiveWebhook(context, SECRET, body, signature)).rejects.toMatchObject({
        code: 'invalid_signature',
      })
    await expect(receiveWebhook(context, SECRET, '{', signPayload('{', SECRET, now))).rejects.toMatchObject({
      code: 'invalid_json',
    })
    await receiveWebhook(context, SECRET, body, signPayload(body, SECRET, now - 200_000))
  })

  test('a late payment is recorded and refunded, and the order is unchanged', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const { payment_id: ref } = await pay(shop.services, {
      userId,
      orderId: id,
      method: 'pm_card_authenticationRequired',
    })
    const [payment] = await shop.payments(id)
    await deleteAnyway(shop, id)
    const body = JSON.stringify({
      id: 'evt_late',
      type: 'payment_intent.succeeded',
      data: { object: { id: ref, metadata: { payment_id: identityOf(payment!) } } },
    })
    // The processor took the money in spite of the cancellation.
    await shop.bank.take()
    await receiveWebhook(shop.context, SECRET, body, signPayload(body, SECRET, shop.clock.now()))
    await shop.work.drain()
    expect(await shop.order(id)).toMatchObject({ processing_status: S.CANCELLED, payment_status: 'refunded' })
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'late_payment', amount: 271, status: 'succeeded' },
    ])
    expect(await shop.outbox()).toEqual([])
  })

  test('a payment that cannot be completed does not delay others', async () => {
    const faults: unknown[] = []
    const shop = await open({
      onFault: (error) => void faults.push(error),
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        createIntent(request) {
          if (request.idempotencyKey.startsWith('payment:1.')) return Promise.reject(new Error('nonsense'))
          return sandbox.createIntent(request)
        },
        abandonIntent: () => Promise.reject(new Error('nonsense')),
      }),
    })
    const orders: number[] = []
    for (const product of [1, 2]) {
      const userId = await shop.customer()
      const { id } = await shop.cart(userId, { [product]: 1 })
      orders.push(id)
      await pay(shop.services, { userId, orderId: id, method: 'pm_usBankAccount' }).catch(() => {})
    }
    await shop.bank.take()
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(faults).toEqual([new Error('nonsense'), new Error('nonsense')])
    const statuses = await Promise.all(orders.map(async (id) => (await shop.order(id)).processing_status))
    expect(statuses).toEqual([S.PENDING_PAYMENT, S.QUEUED])
  })

  test('an abandoned payment is cancelled, and the cart expires in the end', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    shop.clock.advance(15 * 60_000)
    await shop.work.drain()
    expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW, payment_status: 'canceled' })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    // 30 minutes after the customer's last action: the service itself abandoned the payment.
    shop.clock.advance(15 * 60_000)
    await shop.work.drain()
    expect((await shop.order(id)).processing_status).toBe(S.EXPIRED)
    shop.clock.advance(48 * 3_600_000)
    await shop.work.drain()
    // The payment attempt stays on record.
    expect((await shop.order(id)).processing_status).toBe(S.EXPIRED)
  })

  describe('refunds of an order', () => {
    const refund = (shop: Shop, orderId: number, amount?: number) =>
      refundOrder(shop.services, { orderId, mayTouch: anywhere, amount, actor: 'owner' })

    test('a refund can be made in parts up to the whole with its tax, and no further', async () => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 2, 2: 1 })
      expect(await refund(shop, id, 100)).toBe('partially_refunded')
      await expect(refund(shop, id, 636)).rejects.toMatchObject({
        code: 'invalid_amount',
        details: { remaining: 635 },
      })
      expect(await refund(shop, id)).toBe('refunded')
      await expect(refund(shop, id)).rejects.toMatchObject({ code: 'already_refunded' })
      const rows = await shop.refunds(id)
      expect(rows.reduce((sum, { tax }) => sum + tax, 0)).toBe(56)
      expect((await shop.items(id)).map(({ refunded_quantity }) => refunded_quantity)).toEqual([2, 1])
    })

    test('a refund that the processor rejects fails with the reason, and can be tried again', async () => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 1 }, shop.bank.unrefundable)
      await expect(refund(shop, id)).rejects.toMatchObject({
        code: 'refund_failed',
        details: { failure_reason: 'lost_or_stolen_card' },
      })
      expect(await shop.order(id)).toMatchObject({ payment_status: 'completed' })
      expect(await shop.items(id)).toMatchObject([{ refunded_quantity: 0 }])
      await expect(refund(shop, id)).rejects.toMatchObject({ code: 'refund_failed' })
      expect((await shop.refunds(id)).map(({ status }) => status)).toEqual(['failed', 'failed'])
    })

    test('a refund of another owner’s order or of an unpaid order is refused', async () => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 1 })
      const denied = refundOrder(shop.services, {
        orderId: id,
        mayTouch: () => Promise.resolve(false),
        actor: 'other',
      })
      await expect(denied).rejects.toMatchObject({ code: 'order_not_found' })
      await expect(refund(shop, 999)).rejects.toMatchObject({ code: 'order_not_found' })
      const cart = await shop.cart(await shop.customer(), { 1: 1 })
      await expect(refund(shop, cart.id)).rejects.toMatchObject({ code: 'order_state_conflict' })
    })

    test('a full refund before picking cancels the order at the hub first', async () => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 1 })
      shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
      expect(await refund(shop, id)).toBe('refunded')
      expect(shop.commands).toMatchObject([{ hubId: 1, body: { name: 'cancel_order' } }])
      expect((await shop.order(id)).processing_status).toBe(S.CANCELLED)
      await shop.report({ kind: 'order.cancelled', order_id: id })
      expect(await shop.refunds(id)).toMatchObject([{ reason: 'cancelled', status: 'succeeded' }])
      expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    })

    test('a refund that is requested twice simultaneously is paid once', async () => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 1 })
      const results = await Promise.allSettled([refund(shop, id), refund(shop, id)])
      expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const [intent] = await shop.bank.intents()
      expect(intent).toMatchObject({ refunded: 271, amount: 271 })
    })
  })
})

/** The customer deletes the order while its payment needs authentication. */
async function deleteAnyway(shop: Shop, orderId: number): Promise<void> {
  const { user_id: userId } = await shop.order(orderId)
  await deleteOrder(shop.services, { userId, orderId }, 'user')
}
