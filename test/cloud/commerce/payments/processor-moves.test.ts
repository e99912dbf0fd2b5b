import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { moveHub, retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet, ledgerAddsUp } from '../../support/wallets.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const intentOf = async (shop: Shop, orderId: number): Promise<string> =>
  (await shop.payments(orderId))[0]!.processor_ref!

const begin = (shop: Shop, order_id: number) => shop.report({ kind: 'order.preparing', order_id, bins: [1] })
const fail = (shop: Shop, order_id: number) =>
  shop.report({ kind: 'order.failed', order_id, reason: 'jam', bins: [], lines: [] })

/** Checks that no pending work would request money from the processor. */
const owed = (shop: Shop) =>
  shop.context.db.kysely.selectFrom('due_work').select('subject').where('kind', '=', 'money/refund').execute()

/** Alarms of disputes, by owner. */
async function disputes({ context }: Shop) {
  const rows = await context.db.kysely
    .selectFrom('alarms')
    .select(['owner_id', 'subject', 'cleared_at', 'details'])
    .where('kind', '=', 'payment_disputed')
    .orderBy('owner_id')
    .execute()
  return rows.map(({ owner_id, subject, cleared_at, details }) => ({
    owner_id,
    subject,
    is_open: cleared_at === null,
    missing: (JSON.parse(details) as { missing: number }).missing,
  }))
}

onEachProcessor('external refunds and disputes', (open) => {
  test('an external refund is booked as a refund, and is not owed any more', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 2 })
    await begin(shop, id)
    await shop.bank.giveBack(await intentOf(shop, id), 100)
    await deliver(shop, 2)
    expect(await shop.order(id)).toMatchObject({ payment_status: 'partially_refunded' })
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'processor', amount: 100, tax: 7, status: 'succeeded', actor: 'processor' },
    ])
    const mayTouch = () => Promise.resolve(true)
    await expect(
      refundOrder(shop.services, { orderId: id, mayTouch, amount: 442, actor: 'a' }),
    ).rejects.toMatchObject({ code: 'invalid_amount', details: { remaining: 441 } })
    await fail(shop, id)
    await shop.work.drain()
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await shop.bank.intents()).toMatchObject([{ amount: 541, refunded: 541 }])
    expect(await owed(shop)).toEqual([])
  })

  test('an external full refund before picking cancels the order, and the hub is informed', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.bank.giveBack(await intentOf(shop, id), 271)
    await deliver(shop)
    expect(await shop.order(id)).toMatchObject({
      processing_status: S.CANCELLED,
      payment_status: 'refunded',
    })
    expect((await shop.outbox()).at(-1)).toMatchObject({ kind: 'order.cancel' })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  test('an external full refund during preparation makes the hub leave undropped units on the shelf', async () => {
    const shop = await open()
    const { id, uuid } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.bank.giveBack(await intentOf(shop, id), 271)
    await deliver(shop)
    expect(await shop.order(id)).toMatchObject({
      processing_status: S.PREPARING,
      payment_status: 'refunded',
    })
    expect((await shop.outbox()).at(-1)).toEqual({ kind: 'order.cancel', order_id: uuid })
  })

  test('an external full refund before the books know the payment buys nothing', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const method = 'pm_card_authenticationRequired'
    const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
    await shop.bank.take(ref)
    await shop.bank.giveBack(ref, 271)
    await deliver(shop)
    await sendEvent(shop, { id: 'evt_paid', type: 'payment_intent.succeeded', object: { id: ref } })
    await shop.work.drain()
    expect(await shop.order(id)).toMatchObject({
      processing_status: S.CANCELLED,
      payment_status: 'refunded',
    })
    expect((await shop.outbox()).map(({ kind }) => kind)).toEqual(['order.queued', 'order.cancel'])
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  /** An order that its second payment has paid; the bank takes the money of the first one, too. */
  const paidTwice = async (shop: Shop) => {
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const method = 'pm_card_authenticationRequired'
    const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_visa' })
    await shop.bank.take(ref)
    return { id, ref }
  }

  test.each([
    { back: 271, rest: [] },
    { back: 100, rest: [{ reason: 'late_payment', amount: 171, tax: 0, status: 'succeeded' }] },
  ])(
    'an external refund of $back cents of a replaced payment leaves its order to the payment that has paid it',
    async ({ back, rest }) => {
      const shop = await open()
      const { id, ref } = await paidTwice(shop)
      await shop.bank.giveBack(ref, back)
      await deliver(shop, 2)
      await shop.work.drain()
      expect(await shop.order(id)).toMatchObject({
        processing_status: S.QUEUED,
        payment_status: 'completed',
      })
      expect(await shop.refunds(id)).toMatchObject([{ reason: 'processor', amount: back, tax: 0 }, ...rest])
      expect(await shop.payments(id)).toMatchObject([
        { status: 'completed', is_late: 1 },
        { status: 'completed', is_late: 0 },
      ])
      const refunded = (await shop.bank.intents()).map((intent) => [intent.id === ref, intent.refunded])
      expect(refunded).toEqual(
        expect.arrayContaining([
          [true, 271],
          [false, 0],
        ]),
      )
    },
  )

  test('the money of a replaced payment is refunded after its bank has lost a dispute', async () => {
    const shop = await open()
    const { id, ref } = await paidTwice(shop)
    await shop.bank.dispute(ref)
    await deliver(shop)
    await shop.bank.endDispute(ref, 'won')
    await deliver(shop)
    await shop.work.drain()
    expect((await shop.order(id)).processing_status).toBe(S.QUEUED)
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'dispute', tax: 0, status: 'failed' },
      { reason: 'late_payment', amount: 271, tax: 0, status: 'succeeded' },
    ])
  })

  test('an external refund of a deposit before the books know its success debits the wallet too', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_intent_id: ref } = await deposit(shop.services, {
      userId,
      amountCents: 1000,
      method: 'pm_card_visa',
    })
    await shop.bank.take(ref)
    await sendEvent(shop, {
      id: 'evt_back',
      type: 'refund.updated',
      object: { id: 're_back', status: 'succeeded', amount: 1000, payment_intent: ref },
    })
    await sendEvent(shop, {
      id: 'evt_paid',
      type: 'payment_intent.succeeded',
      object: { id: ref, metadata: {} },
    })
    await deliver(shop)
    await shop.work.drain()
    expect(await balanceOf(shop, userId)).toBe(0)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('an open dispute counts as refunded, and owed refunds are not requested in vain', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await begin(shop, id)
    await shop.bank.dispute(await intentOf(shop, id))
    await deliver(shop, 2)
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await shop.refunds(id)).toMatchObject([{ reason: 'dispute', amount: 271, status: 'succeeded' }])
    await fail(shop, id)
    await shop.work.drain()
    expect([await owed(shop), await shop.bank.refunds()]).toEqual([[], []])
    await shop.bank.endDispute(await intentOf(shop, id), 'lost')
    await deliver(shop)
    expect(await shop.refunds(id)).toHaveLength(1)
  })

  test.for(['is retired', 'has another owner'])(
    'a dispute is an alarm of the owner at the sale if the hub %s since, and ends when the money is back',
    async (name) => {
      const shop = await open()
      const { context } = shop
      const { id } = await shop.paidOrder({ 1: 1 })
      await fail(shop, id)
      await context.db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
      await context.db.transact(async (tx) => {
        if (name === 'is retired') await retireHub(tx, context, { hubId: 1, force: false, actor: 'operator' })
        else await moveHub(tx, context, { hubId: 1, newOwner: 2 })
      })
      const intent = await intentOf(shop, id)
      await shop.bank.dispute(intent)
      await deliver(shop)
      expect(await disputes(shop)).toMatchObject([{ owner_id: 1, subject: `order ${id}`, is_open: true }])
      await shop.bank.endDispute(intent, 'won')
      await deliver(shop)
      expect(await disputes(shop)).toMatchObject([{ owner_id: 1, is_open: false }])
    },
  )

  test('a won dispute counts as paid again, and refunds that became due during the dispute are paid', async () => {
    const shop = await open()
    const [delivered, failed] = [await shop.paidOrder({ 1: 1 }), await shop.paidOrder({ 1: 1 })]
    for (const { id } of [delivered, failed]) {
      await begin(shop, id)
      await shop.bank.dispute(await intentOf(shop, id))
    }
    await deliver(shop)
    const [item] = await shop.items(delivered.id)
    const lines = [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }]
    await shop.report({ kind: 'order.ready', order_id: delivered.id, bins: [1], lines })
    await fail(shop, failed.id)
    for (const { id } of [delivered, failed]) await shop.bank.endDispute(await intentOf(shop, id), 'won')
    await deliver(shop, 2)
    await shop.work.drain()
    expect((await shop.order(delivered.id)).payment_status).toBe('completed')
    expect((await shop.order(failed.id)).payment_status).toBe('refunded')
    expect(await shop.refunds(failed.id)).toMatchObject([
      { reason: 'dispute', status: 'failed' },
      { reason: 'failed', amount: 271, status: 'succeeded' },
    ])
  })

  test('an external refund of a deposit debits the wallet up to its balance, once, and a won dispute restores it', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await fillWallet(shop, userId, 1000)
    const [first] = await shop.bank.intents()
    await shop.bank.giveBack(first!.id, 300)
    await deliver(shop, 2)
    expect(await balanceOf(shop, userId)).toBe(700)
    await shop.bank.dispute(first!.id)
    await deliver(shop, 2)
    expect(await balanceOf(shop, userId)).toBe(0)
    expect(await disputes(shop)).toEqual([{ owner_id: 1, subject: 'deposit 1', is_open: true, missing: 0 }])
    await shop.bank.endDispute(first!.id, 'won')
    await deliver(shop, 2)
    expect(await balanceOf(shop, userId)).toBe(700)
    expect(await disputes(shop)).toMatchObject([{ is_open: false }])
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a dispute of a deposit alarms every owner, with the amount that the wallet does not have', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await shop.context.db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
    await fillWallet(shop, userId, 1000)
    const [first] = await shop.bank.intents()
    const { id } = await shop.cart(userId, { 1: 2 })
    await payFromWallet(shop.services, { userId, orderId: id, expectedTotal: undefined })
    await shop.bank.dispute(first!.id)
    await deliver(shop, 2)
    expect(await balanceOf(shop, userId)).toBe(0)
    expect((await disputes(shop)).map(({ owner_id, missing }) => [owner_id, missing])).toEqual([
      [1, 541],
      [2, 541],
    ])
  })

  test('an external refund of an unknown payment changes nothing', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    await sendEvent(shop, {
      id: 'evt_strange',
      type: 'refund.updated',
      object: { id: 're_strange', status: 'succeeded', amount: 100, payment_intent: 'pi_strange' },
    })
    expect((await shop.order(id)).payment_status).toBe('completed')
    expect(await shop.refunds(id)).toEqual([])
  })
})
