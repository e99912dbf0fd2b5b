import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { walletTransactions } from '../../../../cloud/commerce/ledger/wallet.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet, ledgerAddsUp } from '../../support/wallets.ts'

const debit = (shop: Shop, userId: number, orderId: number, expectedTotal?: number) =>
  payFromWallet(shop.services, { userId, orderId, expectedTotal })

onEachDatabase('payments from the wallet', (open) => {
  test('a wallet payment takes the money, freezes the order and sends it to the hub in one transaction', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const { id } = await shop.cart(userId, { 1: 2 })
    expect(await debit(shop, userId, id, 541)).toMatchObject({
      order_id: id,
      payment_id: 'pay_1',
      status: 'succeeded',
      payment_status: 'completed',
      processing_status: S.QUEUED,
      amount: 541,
      client_secret: null,
    })
    expect(await shop.outbox()).toMatchObject([{ kind: 'order.queued', order: { number: id } }])
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 2 })
    expect(await shop.payments(id)).toMatchObject([{ processor: 'wallet', status: 'completed', amount: 541 }])
    const rows = await walletTransactions(shop.context.db.kysely, userId, { limit: 1, offset: 0 })
    expect(rows).toMatchObject([
      { type: 'debit', amount_cents: -541, balance_after_cents: 459, status: 'completed', order_id: id },
    ])
    await expect(debit(shop, userId, id)).rejects.toMatchObject({ code: 'order_already_paid' })
    expect(await balanceOf(shop, userId)).toBe(459)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a wallet payment above the balance is 402, and changes neither the cart, the stock nor the wallet', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 540)
    const { id } = await shop.cart(userId, { 1: 2 })
    await expect(debit(shop, userId, id)).rejects.toMatchObject({
      code: 'insufficient_funds',
      details: { balance_cents: 540, total: 541 },
    })
    expect(await shop.order(id)).toMatchObject({ processing_status: S.NEW, payment_status: 'unpaid' })
    expect([await shop.payments(id), await shop.outbox()]).toEqual([[], []])
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    expect(await balanceOf(shop, userId)).toBe(540)
    const stranger = await shop.customer()
    const { id: other } = await shop.cart(stranger, { 1: 1 })
    await expect(debit(shop, stranger, other)).rejects.toMatchObject({ details: { balance_cents: 0 } })
  })

  test('50 simultaneous wallet payments of an order pay it once', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 5000)
    const { id } = await shop.cart(userId, { 1: 2 })
    const answers = await Promise.allSettled(Array.from({ length: 50 }, () => debit(shop, userId, id)))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await balanceOf(shop, userId)).toBe(5000 - 541)
    expect(await shop.outbox()).toHaveLength(1)
  })

  test('wallet payments with simultaneous refunds and deposits never make a balance negative or inconsistent', async () => {
    const shop = await openShop(await open(), {
      products: [{ price: 100, quantity: 100 }],
      taxMillipercent: 0,
    })
    const userId = await shop.customer()
    await fillWallet(shop, userId, 150)
    const { id: first } = await shop.cart(userId, { 1: 1 })
    await debit(shop, userId, first)
    await shop.report({ kind: 'order.preparing', order_id: first, bins: [1] })
    await shop.report({ kind: 'order.failed', order_id: first, reason: 'x', bins: [], lines: [] })
    expect(await balanceOf(shop, userId)).toBe(150)
    const { id: second } = await shop.cart(userId, { 1: 2 })
    const refund = () =>
      refundOrder(shop.services, {
        orderId: first,
        mayTouch: () => Promise.resolve(true),
        actor: 'o',
        amount: 10,
      })
    const answers = await Promise.allSettled([
      ...Array.from({ length: 10 }, () => debit(shop, userId, second)),
      ...Array.from({ length: 10 }, refund),
    ])
    const codes = answers.map((answer) =>
      answer.status === 'rejected' ? (answer.reason as { code?: string }).code : 'ok',
    )
    expect(new Set(codes)).toEqual(new Set(['insufficient_funds', 'already_refunded']))
    expect(await balanceOf(shop, userId)).toBe(150)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a wallet payment while a card needs authentication first cancels the card’s payment', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    expect(await debit(shop, userId, id)).toMatchObject({ status: 'succeeded', amount: 271 })
    expect((await shop.payments(id)).map(({ processor, status }) => [processor, status])).toEqual([
      ['sandbox', 'canceled'],
      ['wallet', 'completed'],
    ])
  })

  test('a wallet payment after a card payment without an answer pays, and the card is never charged', async () => {
    const shop = await openShop(await open(), {
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        createIntent: (request) =>
          request.idempotencyKey.startsWith('payment:')
            ? Promise.reject(new ProcessorUnavailable('down'))
            : sandbox.createIntent(request),
      }),
    })
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const paying = pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
    await expect(paying).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect(await debit(shop, userId, orderId)).toMatchObject({
      status: 'succeeded',
      processing_status: S.QUEUED,
    })
    expect(await balanceOf(shop, userId)).toBe(729)
    const card = (await shop.bank.intents()).find(({ key }) => key.startsWith('payment:'))
    expect(card).toMatchObject({ status: 'canceled' })
  })

  test('a wallet payment during a card payment first completes that, so that nothing is paid twice', async () => {
    let dies = false
    const shop = await openShop(await open(), {
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        createIntent: (request) => (dies ? new Promise(() => {}) : sandbox.createIntent(request)),
      }),
    })
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    dies = true
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    void pay(shop.services, { userId, orderId, method: 'pm_card_chargeDeclined' })
    await expect.poll(() => shop.payments(orderId)).toMatchObject([{ status: 'pending' }])
    dies = false
    await expect(debit(shop, userId, orderId)).rejects.toMatchObject({ code: 'card_declined' })
    expect(await balanceOf(shop, userId)).toBe(1000)
    await debit(shop, userId, orderId)
    expect(await balanceOf(shop, userId)).toBe(729)
  })

  test('the wallet is no method of `pay`', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const { id } = await shop.cart(userId, { 1: 1 })
    const request = { userId, orderId: id, method: 'wallet' }
    await expect(pay(shop.services, request)).rejects.toMatchObject({ code: 'payment_method_not_found' })
  })

  test('refunds of a wallet payment credit the wallet: undropped units, the owner’s refunds, and cancellations', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const { id } = await shop.cart(userId, { 1: 2 })
    await debit(shop, userId, id)
    const [item] = await shop.items(id)
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    const lines = [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }]
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    expect(await balanceOf(shop, userId)).toBe(729)
    await refundOrder(shop.services, { orderId: id, mayTouch: () => Promise.resolve(true), actor: 'o' })
    expect(await balanceOf(shop, userId)).toBe(1000)
    const rows = await walletTransactions(shop.context.db.kysely, userId, { limit: 10, offset: 0 })
    expect(
      rows.map(({ type, amount_cents, balance_after_cents }) => [type, amount_cents, balance_after_cents]),
    ).toEqual([
      ['refund', 271, 1000],
      ['refund', 270, 729],
      ['debit', -541, 459],
      ['deposit', 1000, 1000],
    ])
    expect(await shop.context.db.kysely.selectFrom('sandbox_refunds').selectAll().execute()).toEqual([])
    await ledgerAddsUp(shop.context.db.kysely)
  })
})
