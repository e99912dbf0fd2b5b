import { expect, test } from 'vitest'
import { payFromWallet } from '../../cloud/commerce/payments/pay.ts'
import { moveHub } from '../../cloud/operations/ownership/hand-over.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { addDeal } from '../cloud/commerce/deals/support/shop-deals.ts'
import { confirmClaim } from '../cloud/support/confirm-claim.ts'
import { fillWallet, ledgerAddsUp, takingsOf } from '../cloud/support/wallets.ts'
import { deliver } from '../cloud/support/webhooks.ts'
import { onEachDatabase } from '../world/database.ts'
import { openWorld, type World } from './walk/world.ts'

type Row = Readonly<Record<string, string>>
type Report = 'owner.sales.report' | 'owner.payments.list' | 'owner.orders.list'
type Owner = 'owner' | 'other-owner'

/** November 2025 in Chicago. */
const MONTH = { from: '2025-11-01', to: '2025-11-30' }

async function csvOf(world: World, report: Report, as: Owner, query = {}): Promise<Row[]> {
  const { json } = await world.ask(routes[report], { as, query, headers: { Accept: 'text/csv' } })
  const [names, ...lines] = (json as string).split('\r\n').map((line) => line.split(','))
  return lines
    .slice(0, -1)
    .map((cells) => Object.fromEntries(names!.map((name, index) => [name, cells[index]!])))
}

const sum = (rows: readonly Row[], ...names: string[]): number =>
  rows.reduce((total, row) => total + names.reduce((cents, name) => cents + Number(row[name]), 0), 0)

onEachDatabase('the CSV of a month', (open) => {
  test('sales, payments and orders add up to the ledger to the cent, for both owners of a hub that was moved', async () => {
    const world = await openWorld(open)
    const { shop } = world
    const { context, clock } = shop
    const q = context.db.kysely
    for (const table of ['products', 'facings'] as const)
      await q.updateTable(table).set({ quantity: 100 }).execute()
    await q.updateTable('hubs').set({ timezone: 'America/Chicago', tax_millipercent: 8875 }).execute()
    await addDeal(shop, {
      triggers: [{ type: 'QUANTITY', quantity: 2, product_id: 1 }],
      rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 33, product_id: 1 }],
    })
    const goTo = async (time: string) => {
      clock.advance(Date.parse(time) - clock.now())
      await shop.hear()
    }
    /** All units were dispensed, and the bins are free. */
    async function collected(): Promise<void> {
      await q
        .updateTable('order_items')
        .set((eb) => ({ qty_dropped: eb.ref('qty') }))
        .execute()
      await q.updateTable('orders').set({ processing_status: 60 }).execute()
    }
    async function sell(quantities: Record<number, number>, method?: string): Promise<number> {
      clock.advance(60_000)
      await shop.hear()
      const { id, reserved_bin: bin } = await shop.paidOrder(quantities, method)
      if (method === 'external') await confirmClaim(context, { hubId: 1, bin: bin!, key: 'abcdefgh' })
      await collected()
      return id
    }
    async function sellFromWallet(): Promise<number> {
      const userId = await shop.customer()
      await fillWallet(shop, userId, 5000)
      const { id: orderId } = await shop.cart(userId, { 2: 3 })
      await payFromWallet(shop.services, { userId, orderId })
      await collected()
      return orderId
    }
    async function dispute(order: number, end?: 'won'): Promise<void> {
      const [payment] = await shop.payments(order)
      await shop.bank.dispute(payment!.processor_ref!)
      await deliver(shop)
      if (end) await shop.bank.endDispute(payment!.processor_ref!, end)
      await deliver(shop)
    }
    async function refund(order: number, amount?: number, status = 200): Promise<void> {
      const body = amount === undefined ? {} : { amount }
      expect((await world.owner('POST', `orders/${order}/refund`, body)).status).toBe(status)
    }

    // The last second of October and the first of November in Chicago.
    await goTo('2025-11-01T04:57:00Z')
    const october = await sell({ 1: 2, 2: 1 })
    await goTo('2025-11-01T05:00:00Z')
    await sell({ 1: 3, 2: 1 })
    await refund(await sell({ 1: 2, 2: 2 }), 101)
    await refund(await sell({ 1: 1 }))
    await refund(october, 77)
    await refund(await sellFromWallet(), 33)
    await sell({ 2: 1 }, 'external')
    await refund(await sell({ 1: 1, 2: 1 }, 'pm_card_refundFail'), undefined, 402)
    const settled = await sell({ 1: 1, 2: 2 }, 'pm_card_refundFail')
    await refund(settled, 120, 402)
    await settleFailed(world, settled)
    await dispute(await sell({ 2: 2 }))
    await dispute(await sell({ 1: 4 }), 'won')
    const disputed = await sell({ 1: 2 })
    await refund(disputed, 50)
    await dispute(disputed)
    await goTo('2025-11-20T12:00:00Z')
    await context.db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner: 2 }))
    const late = await sell({ 1: 2, 2: 2 })
    await sell({ 2: 1 })
    // A refund of a November order in December.
    await goTo('2025-12-01T06:00:00Z')
    expect((await refundAsOther(world, late)).status).toBe(200)
    await sell({ 1: 1 })

    let all = 0
    for (const as of ['owner', 'other-owner'] as const) {
      const payments = await csvOf(world, 'owner.payments.list', as)
      const orders = await csvOf(world, 'owner.orders.list', as, { hub_id: 1 })
      const sold = new Set(
        (await csvOf(world, 'owner.orders.list', as, { hub_id: 1, ...MONTH })).map((row) => row['order_id']),
      )
      const moved = payments.filter((row) => sold.has(row['order_id']))
      expect(moved.length).toBeGreaterThan(2)
      for (const order of orders) {
        const own = payments.filter((row) => row['order_id'] === order['order_id'])
        expect([order['order_id'], sum(own, 'amount')]).toEqual([
          order['order_id'],
          Number(order['total']) - Number(order['refunded_total']),
        ])
      }
      for (const group_by of ['day', 'week', 'month', 'product', 'category', 'hour', 'hub']) {
        const sales = await csvOf(world, 'owner.sales.report', as, { ...MONTH, group_by })
        expect([group_by, sum(sales, 'gross_revenue', 'tax_total')]).toEqual([group_by, sum(moved, 'amount')])
        expect([group_by, sum(sales, 'tax_total')]).toEqual([group_by, sum(moved, 'tax')])
      }
      all += sum(payments, 'amount')
      if (as === 'owner')
        expect(payments).toContainEqual(
          expect.objectContaining({
            order_id: String(settled),
            type: 'refund',
            amount: '-120',
            processor: 'external',
            reference: '',
          }),
        )
      const wallet = payments.filter((row) => row['processor'] === 'wallet')
      if (as === 'owner') expect(-(await walletSum(world))).toBe(sum(wallet, 'amount'))
    }
    expect(all).toBe(await takingsOf(q))
    await ledgerAddsUp(q)
  })
})

/** The owner pays the failed refunds of an order in cash. */
async function settleFailed(world: World, order: number): Promise<void> {
  await world.shop.work.drain(['refund.external'])
  const { failed_refunds } = (await world.owner('GET', `orders/${order}`)).json as {
    failed_refunds: { refund_id: number; amount: number }[]
  }
  const refund_ids = failed_refunds.map(({ refund_id }) => refund_id)
  const amount = failed_refunds.reduce((cents, refund) => cents + refund.amount, 0)
  const body = { refund_ids, amount, reason: 'Cash' }
  const answer = await world.owner('POST', `orders/${order}/refunds/settle`, body)
  expect(answer.json).toMatchObject({ settled_ids: refund_ids, new_status: 'partially_refunded' })
}

const refundAsOther = (world: World, order_id: number) =>
  world.ask(routes['owner.orders.refund'], { as: 'other-owner', params: { order_id }, body: { amount: 91 } })

/** Wallet entries of orders: payments are negative, refunds positive. */
async function walletSum({ shop }: World): Promise<number> {
  const { cents } = await shop.context.db.kysely
    .selectFrom('ledger_entries')
    .select((eb) => eb.fn.sum<number>('amount').as('cents'))
    .where('account', '=', 'wallet')
    .where('order_id', 'is not', null)
    .executeTakeFirstOrThrow()
  return cents
}
