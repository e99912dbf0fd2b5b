import { describe, expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { confirmClaim } from '../../support/confirm-claim.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { refundItem, refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { fillWallet } from '../../support/wallets.ts'

const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
const PARALLEL = 50

type Ask = (shop: Shop, orderId: number, n: number) => Promise<unknown>
const whole: Ask = (shop, orderId) => refundOrder(shop.services, { orderId, ...who })
const amount: Ask = (shop, orderId, n) =>
  refundOrder(shop.services, { orderId, ...who, amount: 20 + ((n * 7) % 60) })
const line: Ask = (shop, orderId, n) =>
  refundItem(shop.services, { orderId, ...who, productId: 1 + (n % 2), quantity: 1 })

const mixtures: Record<string, Ask> = {
  'whole refunds': whole,
  amounts: amount,
  lines: line,
  'all kinds together': (shop, orderId, n) => [line, amount, whole][n % 3]!(shop, orderId, n),
}

/** 2 × 250 and 3 × 179, with tax 1122 cents, paid by each method. */
const means: Record<string, (shop: Shop) => Promise<number>> = {
  card: async (shop) => (await shop.paidOrder({ 1: 2, 2: 3 })).id,
  wallet: async (shop) => {
    const userId = await shop.customer()
    await fillWallet(shop, userId, 2000)
    const { id: orderId } = await shop.cart(userId, { 1: 2, 2: 3 })
    await payFromWallet(shop.services, { userId, orderId })
    return orderId
  },
  external: async (shop) => {
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 2, 2: 3 })
    await pay(shop.services, { userId, orderId, method: 'external' })
    await confirmClaim(shop.context, { hubId: 1, bin: 1, key: 'k' })
    return orderId
  },
}

onEachDatabase('50 parallel refunds of one order', (open) => {
  describe.for(Object.keys(means))('an order paid by %s', (mean) => {
    test.for(Object.keys(mixtures))(
      '50 parallel refunds (%s) never return more than was paid',
      { timeout: 60_000 },
      async (mixture) => {
        const shop = await openShop(await open())
        const id = await means[mean]!(shop)
        await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
        const answers = await Promise.allSettled(
          Array.from({ length: PARALLEL }, (_, n) => mixtures[mixture]!(shop, id, n)),
        )
        const refused = answers.flatMap((answer) =>
          answer.status === 'rejected' ? [(answer.reason as { code?: string }).code] : [],
        )
        const sayings = ['already_refunded', 'insufficient_quantity', 'invalid_amount']
        expect(refused.filter((code) => !sayings.includes(code ?? ''))).toEqual([])
        const rows = await shop.refunds(id)
        expect(rows).toHaveLength(PARALLEL - refused.length)
        expect(rows.every(({ status }) => status === 'succeeded')).toBe(true)
        const returned = rows.reduce((sum, row) => sum + row.amount, 0)
        expect(returned).toBeGreaterThan(0)
        expect(returned).toBeLessThanOrEqual(1122)
        expect(rows.reduce((sum, { tax }) => sum + tax, 0)).toBeLessThanOrEqual(85)
        if (mixture !== 'amounts') {
          expect(returned).toBe(1122)
          expect(rows.reduce((sum, { tax }) => sum + tax, 0)).toBe(85)
        }
        const isWhole = returned === 1122
        expect((await shop.order(id)).payment_status).toBe(isWhole ? 'refunded' : 'partially_refunded')
        for (const item of await shop.items(id)) {
          const own = rows.filter(({ item_id }) => item_id === item.id)
          expect(own.reduce((sum, row) => sum + row.amount, 0)).toBeLessThanOrEqual(item.net! + item.tax!)
          expect(item.refunded_quantity).toBeLessThanOrEqual(item.qty)
        }
        await expectBooks(shop, mean, returned)
      },
    )
  })

  test('one of several parallel full refunds cancels a queued order, and the others come too late', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2 })
    shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
    const answers = await Promise.allSettled(Array.from({ length: PARALLEL }, () => whole(shop, id, 0)))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await shop.refunds(id)).toMatchObject([{ amount: 541, status: 'succeeded' }])
    expect((await shop.order(id)).processing_status).toBe(S.CANCELLED)
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  test('parallel refunds of single units make the hub want the rest after all of them', async () => {
    const shop = await openShop(await open())
    const { id, uuid } = await shop.paidOrder({ 1: 4 })
    const [item] = await shop.items(id)
    const { services, commands } = shop
    let askedAgain: (() => void) | undefined
    const isAskedAgain = new Promise<void>((resolve) => (askedAgain = resolve))
    const slow = {
      ...services,
      commands: {
        async send(request: Parameters<typeof services.commands.send>[0]) {
          commands.push(request)
          if (commands.length === 2) askedAgain?.()
          await isAskedAgain
          return { kind: 'executed', commandId: 'c', data: {}, durationMs: 5 } as const
        },
      },
    }
    await Promise.all([line, line].map((ask) => ask({ ...shop, services: slow }, id, 0)))
    expect((await shop.items(id))[0]).toMatchObject({ qty: 4, refunded_quantity: 2 })
    const lines = [{ line_id: item!.id, wanted: 2 }]
    expect((await shop.outbox()).at(-1)).toEqual({ kind: 'order.reduce', order_id: uuid, lines })
  })

  test('parallel refunds and failed drops add up to one sum', async () => {
    const shop = await openShop(await open())
    const id = await means['card']!(shop)
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    const lines = droppedLines(await shop.items(id), { units: 1 })
    const ask = (_: unknown, n: number): Promise<unknown> => amount(shop, id, n)
    await Promise.allSettled([
      ...Array.from({ length: 20 }, ask),
      shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines }),
      ...Array.from({ length: PARALLEL - 20 }, ask),
    ])
    shop.clock.advance(60_000)
    await shop.work.drain()
    const rows = await shop.refunds(id)
    const returned = rows.reduce((sum, row) => sum + (row.status === 'succeeded' ? row.amount : 0), 0)
    expect(rows.map(({ status }) => status)).not.toContain('pending')
    expect(returned).toBeLessThanOrEqual(1122)
    await expectBooks(shop, 'card', returned)
  })
})

async function expectBooks(shop: Shop, mean: string, returned: number): Promise<void> {
  const q = shop.context.db.kysely
  if (mean === 'card') {
    const [intent] = await q.selectFrom('sandbox_intents').selectAll().execute()
    expect(intent!.refunded).toBe(returned)
  }
  if (mean === 'wallet') {
    const [wallet] = await q.selectFrom('ledger_accounts').selectAll().execute()
    const entries = await q.selectFrom('ledger_entries').selectAll().orderBy('id').execute()
    expect(wallet!.balance).toBe(2000 - 1122 + returned)
    expect(entries.reduce((sum, entry) => sum + entry.amount, 0)).toBe(wallet!.balance)
  }
}
