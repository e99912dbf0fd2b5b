import { expect, test } from 'vitest'
import { acknowledgeAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { applyMove } from '../../../../cloud/commerce/payments/processor-moves.ts'
import { payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import type { MovesRequest } from '../../../../cloud/commerce/processors/processor.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet, ledgerAddsUp } from '../../support/wallets.ts'
import { deliver } from '../../support/webhooks.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const intentOf = async (shop: Shop, orderId: number): Promise<string> =>
  (await shop.payments(orderId))[0]!.processor_ref!

/** Events that are never delivered. */
const lose = (shop: Shop): Promise<void> => shop.bank.deliverEvents(() => Promise.resolve(true))

/** Runs the next due comparison to its end. */
async function compare(shop: Shop, afterMs = HOUR): Promise<void> {
  shop.clock.advance(afterMs)
  await shop.work.ensureRecurring()
  for (let pages = 0; pages < 20; pages += 1) {
    await shop.work.drain(['processor.check'])
    shop.clock.advance(100)
  }
}

const openAlarms = async ({ context }: Shop): Promise<string[]> => {
  const rows = context.db.kysely.selectFrom('alarms').select('kind').where('cleared_at', 'is', null)
  return (await rows.execute()).map(({ kind }) => kind)
}

onEachProcessor('external refunds and disputes without an event', (open, stripe) => {
  test('an external refund is found by the comparison of the books, and is booked once', async () => {
    const shop = await open()
    await compare(shop)
    await shop.hear()
    const { id } = await shop.paidOrder({ 1: 2 })
    await shop.bank.giveBack(await intentOf(shop, id), 100)
    await lose(shop)
    await compare(shop)
    await compare(shop)
    expect(await shop.order(id)).toMatchObject({ payment_status: 'partially_refunded' })
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'processor', amount: 100, status: 'succeeded', actor: 'processor' },
    ])
  })

  test.each(['payment', 'deposit'])(
    'a dispute of a %s with an unknown status raises no further alarm after a person has acknowledged it',
    async (of) => {
      const shop = await open()
      const { db } = shop.context
      const userId = await shop.customer()
      if (of === 'deposit') await fillWallet(shop, userId, 271)
      else await shop.paidOrder({ 1: 1 })
      const { id: intent } = (await shop.bank.intents()).at(-1)!
      // The comparison of each hour finds the dispute again.
      const find = (): Promise<boolean> =>
        db.transact((tx) =>
          applyMove(tx, shop.context, {
            ref: 'dp_1',
            kind: 'dispute',
            intent,
            amount: 271,
            status: 'unknown',
            reason: 'another word',
          }),
        )
      expect(await find()).toBe(true)
      const [alarm] = await db.kysely.selectFrom('alarms').select(['id', 'kind']).execute()
      expect(alarm?.kind).toBe('payment_disputed')
      await db.transact((tx) => acknowledgeAlarm(tx, shop.context, alarm!.id, 'key:owner'))
      for (const ms of [HOUR, DAY]) {
        shop.clock.advance(ms)
        await find()
        expect(await openAlarms(shop)).toEqual([])
      }
    },
  )

  test('a dispute without an event is found, its owner is alarmed, and it ends when it is won weeks later', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.bank.dispute(await intentOf(shop, id))
    await lose(shop)
    await compare(shop)
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await openAlarms(shop)).toContain('payment_disputed')
    shop.clock.advance(60 * DAY)
    await compare(shop)
    await shop.bank.endDispute(await intentOf(shop, id), 'won')
    await lose(shop)
    await compare(shop)
    expect(await shop.refunds(id)).toMatchObject([{ reason: 'dispute', status: 'failed' }])
    expect((await shop.order(id)).payment_status).toBe('completed')
    expect(await openAlarms(shop)).not.toContain('payment_disputed')
  })

  test('an external refund of a deposit debits its wallet once', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    await shop.bank.giveBack((await shop.bank.intents())[0]!.id, 400)
    await lose(shop)
    await compare(shop)
    await compare(shop)
    expect(await balanceOf(shop, userId)).toBe(600)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('an external refund of a spent deposit is a debt, which a later deposit pays once', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await fillWallet(shop, userId, 541)
    const { id: orderId } = await shop.cart(userId, { 1: 2 })
    await payFromWallet(shop.services, { userId, orderId })
    await shop.bank.giveBack((await shop.bank.intents())[0]!.id, 541)
    await lose(shop)
    await compare(shop)
    await fillWallet(shop, userId, 1000)
    await lose(shop)
    await compare(shop)
    expect(await balanceOf(shop, userId)).toBe(459)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a refund that the service requested is not external, and a returned one counts as failed', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain(['money'])
    await compare(shop)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    await shop.bank.returnRefund((await shop.bank.refunds())[0]!.id)
    await compare(shop, DAY)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'failed' }])
    expect(await openAlarms(shop)).toContain('refund_failed')
  })

  test('the comparison runs page by page, and a failed page is requested again', async () => {
    const requests: MovesRequest[] = []
    let isDown = false
    const shop = await open({
      bins: 5,
      onFault: () => {},
      wrapProcessor: (real) => ({
        ...real,
        listMoves(request) {
          if (request.kind === 'refund') requests.push(request)
          return isDown ? Promise.reject(new TypeError('nonsense')) : real.listMoves(request)
        },
      }),
    })
    shop.context.settings.processorCheckBatch = 2
    const orders: number[] = []
    for (let made = 0; made < 5; made += 1) {
      const { id } = await shop.paidOrder(made < 3 ? { 1: 1 } : { 2: 1 })
      orders.push(id)
      await shop.bank.giveBack(await intentOf(shop, id), 10 + made)
      shop.clock.advance(1000)
    }
    await lose(shop)
    isDown = true
    await compare(shop)
    isDown = false
    requests.length = 0
    await compare(shop)
    expect(requests.map(({ after }) => after === null)).toEqual([true, false, false])
    for (const [made, id] of orders.entries())
      expect(await shop.refunds(id)).toMatchObject([{ amount: 10 + made }])

    // From then on it requests only recent objects, with an overlap.
    requests.length = 0
    shop.clock.advance(10 * DAY)
    await compare(shop)
    await compare(shop)
    const { refundCheckMs } = shop.context.settings
    expect(requests.at(-1)!.since).toBeGreaterThan(shop.clock.now() - refundCheckMs - 3 * HOUR)
  })

  test('the comparison ignores other installations on the account, and does not delay its own', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    const books = stripe()?.books
    if (books) {
      const { id: foreign } = books.createIntent({ amount: '500', currency: 'usd' })
      books.succeed(books.intent(foreign))
      books.createRefund({ payment_intent: foreign, amount: '500' })
    }
    await shop.bank.giveBack(await intentOf(shop, id), 271)
    await lose(shop)
    await compare(shop)
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await shop.context.db.kysely.selectFrom('refunds').select('amount').execute()).toEqual([
      { amount: 271 },
    ])
  })

  test('an external refund that a late event reports too is booked once', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.bank.giveBack(await intentOf(shop, id), 50)
    await compare(shop)
    await deliver(shop)
    expect(await shop.refunds(id)).toMatchObject([{ amount: 50 }])
  })

  test('a dispute that was opened and won before its detection requests no refund again', async () => {
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        createRefund: () => Promise.resolve({ ref: null, status: 'failed', failureReason: 'expired_card' }),
      }),
    })
    shop.context.settings.refundRetries = 0
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.bank.giveBack(await intentOf(shop, id), 100)
    await shop.bank.returnRefund((await shop.bank.refunds())[0]!.id)
    await lose(shop)
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain(['money'])
    expect(await shop.refunds(id)).toMatchObject([{ status: 'failed' }])
    await compare(shop)
    await compare(shop)
    expect(await shop.refunds(id)).toHaveLength(1)
  })
})
