import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet } from '../../support/wallets.ts'
import { deliver } from '../../support/webhooks.ts'

onEachProcessor('calls that were refused with 503', (open) => {
  test.for([
    ['before', 'canceled', 0],
    ['after', 'refunded', 271],
  ] as const)(
    'a payment refused for lack of the processor’s answer, %s it took the money, is not completed later: %s',
    async ([when, paymentStatus, refunded]) => {
      let isDown = true
      const shop = await open({
        wrapProcessor: (sandbox) => ({
          ...sandbox,
          async createIntent(request) {
            if (isDown && when === 'before') throw new ProcessorUnavailable('down')
            const intent = await sandbox.createIntent(request)
            if (isDown) throw new ProcessorUnavailable('down')
            return intent
          },
        }),
      })
      const userId = await shop.customer()
      const { id } = await shop.cart(userId, { 1: 1 })
      const paying = pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
      await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
      expect((await shop.order(id)).processing_status).toBe(S.PENDING_PAYMENT)
      isDown = false
      // By webhook or by a query.
      await deliver(shop)
      shop.clock.advance(31_000)
      await shop.work.drain()
      expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW, payment_status: paymentStatus })
      expect(await shop.outbox()).toEqual([])
      expect(await shop.bank.intents()).toMatchObject([{ refunded }])
      expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    },
  )

  /** The processor publishes the result of a payment, and its answer is lost. */
  const openWithEvents = async (): Promise<Shop> => {
    const shop = await open({
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        async createIntent(request) {
          await sandbox.createIntent(request)
          await deliver(shop)
          throw new ProcessorUnavailable('the answer is lost')
        },
      }),
    })
    return shop
  }

  test.for([
    ['pm_card_visa', S.QUEUED, 'succeeded'],
    ['pm_card_authenticationRequired', S.PENDING_PAYMENT, 'requires_action'],
  ] as const)(
    'a payment is not refused if its result is published before its answer is lost: %s',
    async ([method, processing_status, status]) => {
      const shop = await openWithEvents()
      const userId = await shop.customer()
      const { id } = await shop.cart(userId, { 1: 1 })
      expect(await pay(shop.services, { userId, orderId: id, method })).toMatchObject({ status })
      expect(await shop.order(id)).toMatchObject({ processing_status })
    },
  )

  test('a payment that is declined before its answer is lost is reported as declined', async () => {
    const shop = await openWithEvents()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const paying = pay(shop.services, { userId, orderId: id, method: 'pm_card_chargeDeclined' })
    await expect(paying).rejects.toMatchObject({ code: 'card_declined' })
    expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW })
  })

  test('a confirmation without the processor’s answer is requested again', async () => {
    let isDown = false
    const shop = await open({
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        confirmIntent: (ref) =>
          isDown ? Promise.reject(new ProcessorUnavailable('down')) : sandbox.confirmIntent(ref),
      }),
    })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const request = { userId, orderId, method: 'pm_card_authenticationRequired' }
    const { payment_id } = await pay(shop.services, request)
    await shop.bank.approve(payment_id)
    isDown = true
    const confirming = () => confirmPayment(shop.services, { userId, orderId, paymentId: payment_id })
    await expect(confirming()).rejects.toMatchObject({ code: 'processor_unavailable' })
    isDown = false
    expect(await confirming()).toMatchObject({ processing_status: S.QUEUED })
  })

  test('a payment refused for lack of the processor’s answer continues at the customer’s repetition, and is charged once', async () => {
    let isDown = true
    const shop = await open({
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        async createIntent(request) {
          const intent = await sandbox.createIntent(request)
          if (isDown) throw new ProcessorUnavailable('down')
          return intent
        },
      }),
    })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const paying = () => pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    await expect(paying()).rejects.toMatchObject({ code: 'processor_unavailable' })
    await expect(paying()).rejects.toMatchObject({ code: 'processor_unavailable' })
    isDown = false
    expect(await paying()).toMatchObject({ status: 'succeeded' })
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(await shop.order(id)).toMatchObject({ processing_status: S.QUEUED, payment_status: 'completed' })
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 0 }])
  })

  test.for(['pay otherwise', 'delete the order'] as const)(
    'after a payment that an unreachable processor refused, a customer can %s, and the charged money is refunded later',
    async (what) => {
      let isDown = false
      const shop = await open({
        wrapProcessor: (sandbox) => ({
          ...sandbox,
          async createIntent(request) {
            const intent = await sandbox.createIntent(request)
            if (isDown) throw new ProcessorUnavailable('down')
            return intent
          },
          abandonIntent: (request) =>
            isDown ? Promise.reject(new ProcessorUnavailable('down')) : sandbox.abandonIntent(request),
        }),
      })
      const userId = await shop.customer()
      await fillWallet(shop, userId, 1000)
      const { id } = await shop.cart(userId, { 1: 1 })
      isDown = true
      const paying = pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
      await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
      if (what === 'pay otherwise') await payFromWallet(shop.services, { userId, orderId: id })
      else await deleteOrder(shop.services, { userId, orderId: id }, 'user')
      const [first] = await shop.payments(id)
      expect(first).toMatchObject({ status: 'canceled', given_up_at: expect.any(Number) as number })
      isDown = false
      // A processor's search may be an hour late.
      shop.clock.advance(2 * 3_600_000)
      await shop.work.drain()
      expect((await shop.payments(id))[0]).toMatchObject({
        status: 'completed',
        is_late: 1,
        given_up_at: null,
      })
      const [, intent] = await shop.bank.intents()
      expect(intent).toMatchObject({ amount: 271, refunded: 271 })
      const isPaid = what === 'pay otherwise'
      expect((await shop.payments(id)).map(({ is_late }) => is_late)).toEqual(isPaid ? [1, 0] : [1])
    },
  )
})

onEachProcessor('a call to the processor with an unexpected error', (open) => {
  const nonsense = (): Promise<never> => Promise.reject(new TypeError('nonsense'))
  const openAlarms = ({ context }: Shop) =>
    context.db.kysely
      .selectFrom('alarms')
      .select(['kind', 'subject'])
      .where('cleared_at', 'is', null)
      .orderBy('seq')
      .execute()

  test('an unexpected error leaves a payment unconfirmed: the customer gets 503 and may cancel, an operator is alarmed, and charged money is refunded', async () => {
    let isBroken = true
    const faults: unknown[] = []
    const shop = await open({
      onFault: (error) => void faults.push(error),
      wrapProcessor: (real) => ({
        ...real,
        async createIntent(request) {
          const intent = await real.createIntent(request)
          return isBroken ? nonsense() : intent
        },
        abandonIntent: (request) => (isBroken ? nonsense() : real.abandonIntent(request)),
      }),
    })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const paying = pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect(await deleteOrder(shop.services, { userId, orderId: id }, 'user')).toBe('deleted')
    expect(await openAlarms(shop)).toEqual([{ kind: 'payment_stuck', subject: `order ${id}` }])
    expect(faults).toEqual([new TypeError('nonsense'), new TypeError('nonsense')])
    isBroken = false
    // A processor's search may be an hour late.
    shop.clock.advance(2 * 3_600_000)
    await shop.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
    expect(await openAlarms(shop)).toEqual([])
  })

  test('an unexpected error does not change a payment that needs authentication: cancelling is 503, and the order is free when the payment is overdue', async () => {
    const shop = await open({
      onFault: () => {},
      wrapProcessor: (real) => ({ ...real, cancelIntent: nonsense }),
    })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    const deleting = deleteOrder(shop.services, { userId, orderId: id }, 'user')
    await expect(deleting).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect((await shop.order(id)).processing_status).toBe(S.PENDING_PAYMENT)
    shop.clock.advance(shop.context.settings.paymentHoldMs)
    await shop.work.drain()
    expect((await shop.order(id)).processing_status).toBe(S.NEW)
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    expect(await openAlarms(shop)).toEqual([{ kind: 'payment_stuck', subject: `order ${id}` }])
  })

  test('an unexpected error leaves a refund unconfirmed, which continues under its key and is paid once', async () => {
    let isBroken = true
    const shop = await open({
      onFault: () => {},
      wrapProcessor: (real) => ({
        ...real,
        async createRefund(request) {
          const refund = await real.createRefund(request)
          return isBroken ? nonsense() : refund
        },
      }),
    })
    const { id: orderId } = await shop.paidOrder({ 1: 1 })
    const refunding = () =>
      refundOrder(shop.services, {
        orderId,
        mayTouch: () => Promise.resolve(true),
        amount: 100,
        actor: 'owner',
      })
    await expect(refunding()).rejects.toMatchObject({ code: 'processor_unavailable' })
    isBroken = false
    await refunding()
    expect(await shop.refunds(orderId)).toMatchObject([{ amount: 100, status: 'succeeded' }])
    expect(await shop.bank.intents()).toMatchObject([{ refunded: 100 }])
  })

  test('an unexpected error leaves a deposit unconfirmed, which is abandoned and never credited twice', async () => {
    let isBroken = true
    const shop = await open({
      onFault: () => {},
      wrapProcessor: (real) => ({
        ...real,
        createIntent: (request) => (isBroken ? nonsense() : real.createIntent(request)),
      }),
    })
    const userId = await shop.customer()
    const depositing = deposit(shop.services, { userId, amountCents: 500, method: null })
    await expect(depositing).rejects.toMatchObject({ code: 'processor_unavailable' })
    isBroken = false
    shop.clock.advance(3 * 3_600_000)
    await shop.work.drain()
    expect(await balanceOf(shop, userId)).toBe(0)
  })
})
