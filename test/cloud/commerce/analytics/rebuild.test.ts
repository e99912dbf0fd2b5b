import { expect, test } from 'vitest'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { salesWork } from '../../../../cloud/commerce/analytics/rebuild.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { Reply } from '../../../../cloud/platform/http/handler.ts'
import { schedule } from '../../../../cloud/platform/work/queue.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openBooks, type DrawnSale } from './support/books.ts'
import { differences } from './support/check.ts'

/** Finds hubs with stale summaries, as due work does, and rebuilds the summaries. */
async function rebuildStale(context: CloudContext): Promise<number[]> {
  await context.db.transact((tx) => schedule(tx, 'sales.calendars', 'all', context.runtime.clock.now()))
  const rebuilt = await new WorkRunner(context, salesWork(context)).drain()
  return rebuilt.sort((a, b) => a - b)
}

const sale = (index: number): DrawnSale => ({
  at: Date.parse('2025-01-01T00:30:00Z') + index * 3_600_000,
  user: (index % 5) + 1,
  processor: 'sandbox',
  lines: [{ product: (index % 6) + 1, quantity: 2, net: 100 + index, tax: 7, cost: 30 }],
})

onEachDatabase('the summaries of a hub', (open) => {
  async function openHub() {
    const db = await open()
    const { context } = await openCloud({ db })
    const books = await openBooks(context, 'America/Chicago')
    return { db, context, books }
  }
  const calendar = async ({ db }: Awaited<ReturnType<typeof openHub>>) =>
    db.kysely
      .selectFrom('sales_calendars')
      .select(['timezone', 'is_whole'])
      .where('hub_id', '=', 1)
      .executeTakeFirst()

  test('missing summaries of a hub are built, and existing ones are left unchanged', async () => {
    const hub = await openHub()
    for (let index = 0; index < 30; index += 1) await hub.books.sell(sale(index))
    for (const table of ['sales', 'sales_totals', 'sales_customers', 'sales_calendars'] as const)
      await hub.db.kysely.deleteFrom(table).execute()
    expect(await differences(hub.db)).not.toEqual([])
    expect(await rebuildStale(hub.context)).toEqual([1, 2])
    expect(await differences(hub.db)).toEqual([])
    expect(await rebuildStale(hub.context)).toEqual([])
  })

  test('the summaries of a hub are rebuilt after a change of its time zone', async () => {
    const hub = await openHub()
    for (let index = 0; index < 30; index += 1) await hub.books.sell(sale(index))
    await rebuildStale(hub.context)
    await hub.books.moveHub('Asia/Tokyo')
    expect(await differences(hub.db)).not.toEqual([])
    expect(await rebuildStale(hub.context)).toEqual([1])
    expect(await differences(hub.db)).toEqual([])
    expect(await calendar(hub)).toEqual({ timezone: 'Asia/Tokyo', is_whole: 1 })
  })

  test('the summaries of a hub stay in one time zone if the zone changed only for a moment', async () => {
    const hub = await openHub()
    await rebuildStale(hub.context)
    for (const [index, timezone] of ['Asia/Tokyo', 'America/Chicago'].entries()) {
      await hub.books.sell(sale(index))
      await hub.books.moveHub(timezone)
      await hub.books.sell(sale(10 + index))
    }
    expect(await rebuildStale(hub.context)).toEqual([])
    expect(await differences(hub.db)).toEqual([])
  })

  test('a rebuild repairs summaries with any content', async () => {
    const hub = await openHub()
    const orders = []
    for (let index = 0; index < 10; index += 1) orders.push(await hub.books.sell(sale(index)))
    await hub.db.kysely.updateTable('sales_totals').set({ revenue: 1, customers: 77 }).execute()
    await hub.db.kysely.deleteFrom('sales').where('order_id', '=', orders[3]!).execute()
    await hub.db.kysely.updateTable('sales_calendars').set({ is_whole: 0 }).execute()
    expect(await rebuildStale(hub.context)).toContain(1)
    expect(await differences(hub.db)).toEqual([])
  })

  test('an interrupted rebuild of summaries is started again', async () => {
    const hub = await openHub()
    const reports = analyticsHandlers(hub.context, { addressOf: String })
    const saysIncomplete = async () => {
      const answer = await reports['owner.analytics.gross_revenue']({
        query: { hub_id: 1 },
        credential: { ownerId: 1 },
      } as never)
      return answer instanceof Reply && answer.headers['X-Incomplete'] !== undefined
    }
    for (let index = 0; index < 10; index += 1) await hub.books.sell(sale(index))
    let steps = 0
    const dying = {
      ...hub.context,
      settings: { ...hub.context.settings, workConcurrency: 1 },
      checkpoint: (point: string) => {
        if (point !== 'analytics.rebuild-step') return
        steps += 1
        if (steps === 2) throw new Error('killed')
      },
      onFault: (error: unknown) => {
        throw error
      },
    }
    await expect(rebuildStale(dying)).rejects.toThrow('killed')
    expect(await calendar(hub)).toMatchObject({ is_whole: 0 })
    await hub.books.sell(sale(11))
    expect(await saysIncomplete()).toBe(true)
    expect(await rebuildStale(hub.context)).toContain(1)
    expect(await saysIncomplete()).toBe(false)
    expect(await differences(hub.db)).toEqual([])
  })

  test('summaries are right after two simultaneous rebuilds during orders and refunds', async () => {
    const hub = await openHub()
    const orders: number[] = []
    for (let index = 0; index < 520; index += 1) orders.push(await hub.books.sell(sale(index)))
    const trade = async (from: number): Promise<void> => {
      for (let index = from; index < from + 15; index += 1) {
        await hub.books.sell(sale(600 + index))
        await hub.books.refundUnits(orders[index * 7]!, 0, 1)
        await hub.books.refundPart(orders[index * 11]!, 0.5)
      }
    }
    await hub.db.kysely.updateTable('sales_calendars').set({ is_whole: 0 }).execute()
    const work = salesWork(hub.context)['sales.rebuild']!
    const rebuild = () => work.run({ kind: 'sales.rebuild', subject: '1', attempts: 0 })
    await Promise.all([rebuild(), trade(0), rebuild(), trade(15), trade(30)])
    expect(await differences(hub.db)).toEqual([])
    expect(await calendar(hub)).toEqual({ timezone: 'America/Chicago', is_whole: 1 })
  }, 60_000)
})
