import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { settleRefunds } from '../../../../cloud/commerce/refunds/settle-refunds.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { walletBalance, walletTransactions } from '../../../../cloud/commerce/ledger/wallet.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { balanceOf, fillWallet, ledgerAddsUp } from '../../support/wallets.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const debtOf = async (shop: Shop, userId: number): Promise<number> => {
  const wallet = await shop.context.db.kysely
    .selectFrom('ledger_accounts')
    .select('debt')
    .where('user_id', '=', userId)
    .where('account', '=', 'wallet')
    .executeTakeFirstOrThrow()
  return wallet.debt
}

const bought = async (shop: Shop, userId: number): Promise<number> => {
  const { id: orderId } = await shop.cart(userId, { 1: 1 })
  await payFromWallet(shop.services, { userId, orderId })
  return orderId
}

/** The hub dispenses an order, and its customer takes it out of the bin. */
const collect = async (shop: Shop, orderId: number): Promise<void> => {
  const about = { order_id: orderId, bins: [1] }
  await shop.report({ kind: 'order.preparing', ...about })
  await shop.report({ kind: 'order.ready', ...about, lines: droppedLines(await shop.items(orderId)) })
  await shop.report({ kind: 'order.completed', order_id: orderId })
}

/** The bank of a deposit's cardholder takes the money back, or returns it. */
const dispute = (shop: Shop, intent: string, amount: number, status: 'succeeded' | 'failed') =>
  sendEvent(shop, {
    id: `evt_${intent}_${status}`,
    type: 'dispute.updated',
    object: { id: `dp_${intent}`, payment_intent: intent, amount, status },
  })

const asOwner = (orderId: number) => ({ orderId, mayTouch: () => Promise.resolve(true), actor: 'key:owner' })

const deleteOwner = (shop: Shop, userId: number) =>
  shop.context.db.kysely
    .updateTable('users')
    .set({ deleted_at: shop.clock.now() })
    .where('id', '=', userId)
    .execute()

const openAlarms = async (shop: Shop) =>
  (
    await shop.context.db.kysely
      .selectFrom('alarms')
      .select(['kind', 'subject'])
      .where('cleared_at', 'is', null)
      .execute()
  ).map(({ kind, subject }) => `${kind} ${subject}`)

onEachDatabase('the debt of a wallet', (open) => {
  test('an owner’s refund of an order pays the debt of a disputed deposit', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 500)
    const orderId = await bought(shop, userId)
    const [intent] = await shop.bank.intents()
    await dispute(shop, intent!.id, 500, 'succeeded')
    expect([await balanceOf(shop, userId), await debtOf(shop, userId)]).toEqual([0, 271])
    await refundOrder(shop.services, { ...asOwner(orderId), amount: 100 })
    expect([await balanceOf(shop, userId), await debtOf(shop, userId)]).toEqual([0, 171])
    await refundOrder(shop.services, asOwner(orderId))
    expect([await balanceOf(shop, userId), await debtOf(shop, userId)]).toEqual([0, 0])
    await fillWallet(shop, userId, 700)
    expect(await balanceOf(shop, userId)).toBe(700)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('an automatic refund of undropped units pays the debt first', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 300)
    const orderId = await bought(shop, userId)
    const [intent] = await shop.bank.intents()
    await dispute(shop, intent!.id, 300, 'succeeded')
    await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
    await shop.report({ kind: 'order.failed', order_id: orderId, reason: 'jam', bins: [], lines: [] })
    expect((await shop.order(orderId)).payment_status).toBe('refunded')
    expect([await balanceOf(shop, userId), await debtOf(shop, userId)]).toEqual([0, 0])
  })

  test('the customer sees an empty wallet, and the debt and its payments as adjustments', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const q = shop.context.db.kysely
    await fillWallet(shop, userId, 500)
    await bought(shop, userId)
    const [intent] = await shop.bank.intents()
    await dispute(shop, intent!.id, 500, 'succeeded')
    expect(await walletBalance(q, shop.context, userId)).toMatchObject({ balance_cents: 0 })
    await fillWallet(shop, userId, 400)
    expect(await walletBalance(q, shop.context, userId)).toMatchObject({ balance_cents: 129 })
    const shown = await walletTransactions(q, userId, { limit: 10, offset: 0 })
    expect(
      shown.map(({ type, amount_cents, balance_after_cents, description }) => [
        type,
        amount_cents,
        balance_after_cents,
        description,
      ]),
    ).toEqual([
      ['adjustment', -271, 129, 'Payment of what a returned deposit left owing'],
      ['deposit', 400, 400, 'Deposit'],
      ['adjustment', -229, 0, 'Deposit taken back by its bank; 271 cents of it were spent and are owed'],
      ['debit', -271, 229, 'Payment of order 1'],
      ['deposit', 500, 500, 'Deposit'],
    ])
  })

  test('a won dispute restores the whole deposit, whatever part of the debt was paid before', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 500)
    await bought(shop, userId)
    const [intent] = await shop.bank.intents()
    await dispute(shop, intent!.id, 500, 'succeeded')
    await fillWallet(shop, userId, 100)
    await dispute(shop, intent!.id, 500, 'failed')
    expect([await balanceOf(shop, userId), await debtOf(shop, userId)]).toEqual([500 - 271 + 100, 0])
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('deposits, purchases, refunds and disputes in any order leave exactly the money that was really paid', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('deposit' as const), amount: fc.integer({ min: 100, max: 900 }) }),
      fc.record({ kind: fc.constantFrom('buy', 'refund', 'take', 'restore'), which: fc.nat({ max: 9 }) }),
    )
    const shop = await openShop(await open(), { products: [{ price: 250, quantity: 500 }], bins: 9 })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const userId = await shop.customer()
        const deposits: { intent: string; amount: number; isGone: boolean }[] = []
        const orders: { id: number; isBack: boolean }[] = []
        for (const one of steps) {
          if (one.kind === 'deposit') {
            const amountCents = (one as { amount: number }).amount
            const made = await deposit(shop.services, { userId, amountCents, method: 'pm_card_visa' })
            await deliver(shop)
            deposits.push({ intent: made.payment_intent_id, amount: amountCents, isGone: false })
            continue
          }
          const { which } = one as { which: number }
          const own = deposits[which % Math.max(1, deposits.length)]
          const order = orders[which % Math.max(1, orders.length)]
          if (one.kind === 'buy' && (await balanceOf(shop, userId)) >= 271 && orders.length === 0)
            orders.push({ id: await bought(shop, userId), isBack: false })
          if (one.kind === 'refund' && order && !order.isBack) {
            await refundOrder(shop.services, asOwner(order.id))
            order.isBack = true
          }
          if (own && (one.kind === 'take' || one.kind === 'restore')) {
            await dispute(shop, own.intent, own.amount, one.kind === 'take' ? 'succeeded' : 'failed')
            // A won dispute stays won.
            own.isGone = one.kind === 'take' && !(own as { isWon?: true }).isWon
            if (one.kind === 'restore') Object.assign(own, { isWon: true })
          }
          const paidIn = deposits.reduce((sum, { amount, isGone }) => sum + (isGone ? 0 : amount), 0)
          const spent = orders.reduce((sum, { isBack }) => sum + (isBack ? 0 : 271), 0)
          if (deposits.length > 0)
            expect((await balanceOf(shop, userId)) - (await debtOf(shop, userId))).toBe(paidIn - spent)
        }
        // The next customer finds a free bin again.
        for (const { id, isBack } of orders) if (!isBack) await collect(shop, id)
      }),
      { numRuns: 20 },
    )
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('an owner’s refund to the wallet of a deleted user fails, raises the alarm and credits no wallet', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 300)
    const orderId = await bought(shop, userId)
    await deleteOwner(shop, userId)
    await expect(refundOrder(shop.services, asOwner(orderId))).rejects.toMatchObject({
      code: 'refund_failed',
      details: { failure_reason: 'wallet_closed' },
    })
    expect(await balanceOf(shop, userId)).toBe(29)
    expect((await shop.order(orderId)).payment_status).toBe('completed')
    expect(await openAlarms(shop)).toContain(`refund_failed order ${orderId}`)
  })

  test('an automatic refund to the wallet of a deleted user fails and raises the alarm, until the owner pays in another way', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await fillWallet(shop, userId, 300)
    const orderId = await bought(shop, userId)
    await deleteOwner(shop, userId)
    await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
    await shop.report({ kind: 'order.failed', order_id: orderId, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()
    expect(await balanceOf(shop, userId)).toBe(29)
    expect(await shop.refunds(orderId)).toMatchObject([
      { status: 'failed', failure_reason: 'wallet_closed', amount: 271 },
    ])
    expect(await openAlarms(shop)).toContain(`refund_failed order ${orderId}`)
    // The owner pays in cash.
    const [failed] = await shop.refunds(orderId)
    const settlement = { ids: [failed!.id], amount: 271, reason: 'cash', actor: 'owner' }
    await shop.context.db.transact((tx) => settleRefunds(tx, shop.services, orderId, settlement))
    expect(await balanceOf(shop, userId)).toBe(29)
    expect((await shop.order(orderId)).payment_status).toBe('refunded')
    expect(await openAlarms(shop)).not.toContain(`refund_failed order ${orderId}`)
  })
})
