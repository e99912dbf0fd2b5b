import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { DISPUTE_EVENT } from '../../../../cloud/commerce/processors/processor.ts'
import { pointsFor } from '../../../../cloud/commerce/ledger/points.ts'
import { balanceOf } from '../../../../cloud/commerce/ledger/ledger.ts'
import { refundItem, refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { emptySqlite, onEachDatabase } from '../../../world/database.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { ledgerAddsUp } from '../../support/wallets.ts'
import { sendEvent } from '../../support/webhooks.ts'

const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
const refund = (shop: Shop, orderId: number, amount?: number) =>
  refundOrder(shop.services, { orderId, ...who, amount })
const pointsOf = async (shop: Shop, orderId: number) =>
  balanceOf(shop.context.db.kysely, (await shop.order(orderId)).user_id, 'points')

/** Lines of 2 × 250 and 3 × 179: a subtotal of 1037 cents, and 85 of tax. */
async function completed(shop: Shop, method?: string): Promise<number> {
  const { id } = await shop.paidOrder({ 1: 2, 2: 3 }, method)
  await dropAll(shop, id)
  await shop.report({ kind: 'order.completed', order_id: id })
  return id
}

async function dropAll(shop: Shop, id: number): Promise<void> {
  const lines = droppedLines(await shop.items(id))
  await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
}

onEachDatabase('points', (open) => {
  test('points are earned at the completion of an order: one for each whole 100 cents before tax', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2, 2: 3 })
    await dropAll(shop, id)
    expect(await pointsOf(shop, id)).toBe(0)
    await shop.report({ kind: 'order.completed', order_id: id }, { kind: 'order.completed', order_id: id })
    expect(await pointsOf(shop, id)).toBe(10)
  })

  test('points are earned for the dropped units', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2, 2: 3 })
    const [first, second] = await shop.items(id)
    const lines = [
      { line_id: first!.id, dropped: 2, doubtful: 0, bins: [1] },
      { line_id: second!.id, dropped: 1, doubtful: 0, bins: [1] },
    ]
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    await shop.work.drain()
    await shop.report({ kind: 'order.completed', order_id: id })
    // 500 + 179
    expect(await pointsOf(shop, id)).toBe(6)
  })

  test('an order that is not collected earns no points', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2 })
    await dropAll(shop, id)
    await shop.report({ kind: 'order.unclaimed', order_id: id })
    await refund(shop, id, 100)
    expect(await pointsOf(shop, id)).toBe(0)
    expect(await shop.context.db.kysely.selectFrom('ledger_entries').selectAll().execute()).toEqual([])
  })

  test('refunds remove points, and failed refunds restore them', async () => {
    const shop = await openShop(await open())
    const id = await completed(shop)
    await refundItem(shop.services, { orderId: id, ...who, productId: 2, quantity: 1 })
    expect(await pointsOf(shop, id)).toBe(8)
    const [row] = await shop.refunds(id)
    const object = { id: row!.processor_ref, status: 'failed', failure_reason: 'unknown' }
    await sendEvent(shop, { id: 'evt', type: 'refund.failed', object })
    expect(await pointsOf(shop, id)).toBe(10)
    // The bank has returned it to the processor.
    await shop.context.db.kysely.updateTable('sandbox_intents').set({ refunded: 0 }).execute()
    await refund(shop, id)
    expect(await pointsOf(shop, id)).toBe(0)
  })

  test('a refund that the processor refuses removes no points', async () => {
    const shop = await openShop(await open())
    const id = await completed(shop, 'pm_card_refundFail')
    await expect(refund(shop, id)).rejects.toMatchObject({ code: 'refund_failed' })
    expect(await pointsOf(shop, id)).toBe(10)
    expect(await shop.context.db.kysely.selectFrom('ledger_entries').selectAll().execute()).toHaveLength(1)
  })

  test('points are removed once, also if a bank takes back money that was refunded', async () => {
    const shop = await openShop(await open())
    const id = await completed(shop)
    await refund(shop, id, 600)
    const [payment] = await shop.payments(id)
    const dispute = (status: string) =>
      sendEvent(shop, {
        id: `evt_${status}`,
        type: DISPUTE_EVENT,
        object: { id: 'dp_1', status, amount: 1122, payment_intent: payment!.processor_ref },
      })
    await dispute('succeeded')
    expect(await pointsOf(shop, id)).toBe(0)
    await dispute('failed')
    expect(await pointsOf(shop, id)).toBe(4)
  })

  test('points are removed at the rate at which they were earned', async () => {
    const shop = await openShop(await open())
    const id = await completed(shop)
    Object.assign(shop.context, { settings: { ...shop.context.settings, loyaltyCentsPerPoint: 10 } })
    await refundItem(shop.services, { orderId: id, ...who, productId: 1, quantity: 2 })
    expect(await pointsOf(shop, id)).toBe(5)
  })
})

test('an order’s points are those of its unrefunded part, for any portions of the refunds', async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const shop = await openShop(db, {
    products: [
      { price: 250, quantity: 10_000 },
      { price: 199, markdown: 10, quantity: 10_000 },
    ],
  })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 8 }), async (amounts) => {
      const id = await completed(shop)
      for (const amount of amounts) {
        await refund(shop, id, amount).catch(() => {})
        const rows = await shop.refunds(id)
        const net = rows.reduce((sum, row) => sum + row.amount - row.tax, 0)
        expect(await pointsOf(shop, id)).toBe(pointsFor(1037 - net, 100))
      }
      await refund(shop, id).catch(() => {})
      expect(await pointsOf(shop, id)).toBe(0)
    }),
    { numRuns: 30 },
  )
  await ledgerAddsUp(db.kysely)
  await db.close()
})
