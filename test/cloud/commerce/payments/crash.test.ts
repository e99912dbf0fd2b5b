import { identityOf } from '../../../../cloud/commerce/processors/processor.ts'
import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { refundItem, refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { atEachCheckpoint } from '../../support/each-checkpoint.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet, ledgerAddsUp } from '../../support/wallets.ts'
import { deliver } from '../../support/webhooks.ts'

const paid = async (shop: Shop): Promise<number> => (await shop.paidOrder({ 1: 2 })).id

/** The processor's and the service's books agree to the cent. */
async function booksAgree({ context, bank }: Shop): Promise<void> {
  const q = context.db.kysely
  const intents = await bank.intents()
  const payments = await q.selectFrom('payments').selectAll().execute()
  const refunds = await q.selectFrom('refunds').selectAll().execute()
  expect(intents).toHaveLength(payments.length)
  for (const payment of payments) {
    const intent = intents.find(({ key }) => key === `payment:${identityOf(payment)}`)!
    expect(payment.status).toBe(intent.status === 'succeeded' ? 'completed' : intent.status)
    const back = refunds
      .filter(({ payment_id, status }) => payment_id === payment.id && status === 'succeeded')
      .reduce((sum, { amount }) => sum + amount, 0)
    expect(back).toBe(intent.refunded)
  }
  expect(refunds.every(({ status }) => status !== 'pending')).toBe(true)
}

onEachProcessor('crashes in the middle of money operations', (open, stripe) => {
  // The sandbox can die within its own work; Stripe's crashes are outside of this test.
  const ofSandbox = (...points: string[]): string[] => (stripe() ? [] : points)

  test('a crash anywhere in the webhook of a deposit credits it once when the event is repeated', async () => {
    const points = await atEachCheckpoint(
      open,
      async (shop) => {
        const userId = await shop.customer()
        await deposit(shop.services, { userId, amountCents: 2500, method: 'pm_card_visa' })
        return userId
      },
      (shop) => deliver(shop),
      async (shop, userId) => {
        shop.clock.advance(60_000)
        await deliver(shop)
        await walletAgrees(shop)
        expect(await balanceOf(shop, userId)).toBe(2500)
      },
    )
    expect(new Set(points)).toEqual(
      new Set([
        'db.before-commit',
        'db.after-commit',
        ...ofSandbox('work.claimed', 'work.handled', 'processor.event-delivered'),
      ]),
    )
  })

  test('a crash anywhere in a wallet payment leaves a cart and the money, or a paid order at the hub', async () => {
    const points = await atEachCheckpoint(
      open,
      async (shop) => (await shop.cart(await customerWithWallet(shop), { 1: 2 })).id,
      async (shop, orderId) => {
        const { user_id: userId } = await shop.order(orderId)
        return payFromWallet(shop.services, { userId, orderId })
      },
      async (shop, id) => {
        await walletAgrees(shop)
        const order = await shop.order(id)
        const isPaid = order.processing_status === S.QUEUED
        expect(await balanceOf(shop, order.user_id)).toBe(isPaid ? 459 : 1000)
        expect(await shop.outbox()).toHaveLength(isPaid ? 1 : 0)
        expect(await shop.product(1)).toEqual({ quantity: 5, reserved: isPaid ? 2 : 0 })
        expect(order.payment_status).toBe(isPaid ? 'completed' : 'unpaid')
      },
    )
    expect(points).toEqual(['db.before-commit', 'db.after-commit'])
  })

  test('a crash anywhere in a refund of a line to a wallet credits it once, or not at all', async () => {
    await atEachCheckpoint(
      open,
      async (shop) => {
        const userId = await customerWithWallet(shop)
        const { id: orderId } = await shop.cart(userId, { 1: 2 })
        await payFromWallet(shop.services, { userId, orderId })
        return orderId
      },
      (shop, orderId) =>
        refundItem(shop.services, {
          orderId,
          mayTouch: () => Promise.resolve(true),
          productId: 1,
          quantity: 1,
          actor: 'a',
        }),
      async (shop, id) => {
        await walletAgrees(shop)
        const refunds = await shop.refunds(id)
        const { user_id } = await shop.order(id)
        expect(await balanceOf(shop, user_id)).toBe(459 + 270 * refunds.length)
        expect((await shop.items(id))[0]!.refunded_quantity).toBe(refunds.length)
      },
    )
  })

  test('a crash anywhere in the cancellation of an order with an offline hub leaves it cancelled, refunded and sent to the hub', async () => {
    await atEachCheckpoint(
      open,
      paid,
      (shop, orderId) =>
        refundOrder(shop.services, { orderId, mayTouch: () => Promise.resolve(true), actor: 'a' }),
      async (shop, id) => {
        await booksAgree(shop)
        const isDone = (await shop.order(id)).processing_status === S.CANCELLED
        expect((await shop.order(id)).payment_status).toBe(isDone ? 'refunded' : 'completed')
        expect(await shop.outbox()).toHaveLength(isDone ? 2 : 1)
      },
    )
  })

  test('a crash anywhere in a cancellation that the hub executed ends in a full refund', async () => {
    await atEachCheckpoint(
      open,
      paid,
      async (shop, orderId) => {
        shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 1 })
        const { user_id: userId } = await shop.order(orderId)
        return deleteOrder(shop.services, { userId, orderId }, 'user')
      },
      async (shop, id) => {
        if (shop.commands.length > 0) await shop.report({ kind: 'order.cancelled', order_id: id })
        await shop.work.drain()
        await booksAgree(shop)
        if (shop.commands.length === 0) return
        expect(await shop.order(id)).toMatchObject({
          processing_status: S.CANCELLED,
          payment_status: 'refunded',
        })
        expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
      },
    )
  })

  test('a crash at any step of a report of missing units loses no refund', async () => {
    await atEachCheckpoint(
      open,
      paid,
      (shop, id) => reportShort(shop, id),
      async (shop, id) => {
        // The hub repeats unacknowledged reports.
        await reportShort(shop, id)
        await shop.work.drain()
        await booksAgree(shop)
        expect(await shop.refunds(id)).toMatchObject([{ reason: 'short', amount: 270, status: 'succeeded' }])
      },
    )
  })
})

/** The wallet's ledger and the processor agree to the cent. */
async function walletAgrees(shop: Shop): Promise<void> {
  const q = shop.context.db.kysely
  await ledgerAddsUp(q)
  const intents = await shop.bank.intents()
  const deposits = await q
    .selectFrom('ledger_entries as t')
    .innerJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 't.id').on('o.kind', '=', 'deposit'),
    )
    .selectAll('t')
    .select('o.processor_ref')
    .where('t.type', '=', 'deposit')
    .execute()
  expect(intents.map(({ key }) => key).toSorted()).toEqual(
    deposits.map((deposit) => `deposit:${identityOf(deposit)}`).toSorted(),
  )
  for (const deposit of deposits) {
    const { processor_ref, status } = deposit
    const intent = intents.find(({ key }) => key === `deposit:${identityOf(deposit)}`)!
    expect([processor_ref, status]).toEqual([
      intent.id,
      intent.status === 'succeeded' ? 'completed' : intent.status,
    ])
  }
}

async function customerWithWallet(shop: Shop): Promise<number> {
  const userId = await shop.customer()
  await fillWallet(shop, userId, 1000)
  return userId
}

async function reportShort(shop: Shop, order_id: number): Promise<void> {
  const [item] = await shop.items(order_id)
  await shop.report({
    kind: 'order.ready',
    order_id,
    bins: [1],
    lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }],
  })
}
