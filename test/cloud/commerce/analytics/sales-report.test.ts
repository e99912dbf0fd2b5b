import { expect, test } from 'vitest'
import { salesReportHandlers } from '../../../../cloud/commerce/analytics/sales-report.ts'
import type { Figures, SalesRow } from '../../../../protocol/contract/owner-reports.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openBooks } from './support/books.ts'

interface Report {
  from: string
  to: string
  totals: Figures
  data: SalesRow[]
}

const at = (text: string) => Date.parse(text)
const NOTHING: Figures = {
  total_orders: 0,
  units_sold: 0,
  gross_revenue: 0,
  discount_total: 0,
  tax_total: 0,
  refunded_total: 0,
  cost_of_goods: 0,
  net_profit: 0,
}

onEachDatabase('the sales report', (open) => {
  /** Hub 1 of owner 1 in Chicago, hub 2 of owner 2 in Tokyo; Monday 2025-11-03, 15:30 in Chicago. */
  async function openHubs() {
    const app = await openCloud({ db: await open(), handlersOf: salesReportHandlers })
    app.runtime.clock.advance(at('2025-11-03T21:30:00Z') - app.runtime.clock.now())
    const chicago = await openBooks(app.context, 'America/Chicago')
    const tokyo = await openBooks(app.context, 'Asia/Tokyo', 2)
    const keys = {
      1: await app.key(['analytics:read']),
      2: await app.key(['analytics:read'], { ownerId: 2 }),
    }
    const get = (query: string, owner: 1 | 2 = 1, accept = 'application/json') =>
      app.call('GET', `/api/v1/owners/sales?${query}`, { key: keys[owner], headers: { Accept: accept } })
    return {
      ...app,
      chicago,
      tokyo,
      get,
      report: async (query: string, owner: 1 | 2 = 1) => (await get(query, owner)).json as Report,
    }
  }

  const sale = (when: string, product = 1, user = 1) => ({
    at: at(when),
    user,
    processor: 'sandbox' as const,
    lines: [{ product, quantity: 2, original: 150, net: 250, tax: 20, cost: 60 }],
  })
  const sold = (orders: number): Figures => ({
    total_orders: orders,
    units_sold: 2 * orders,
    gross_revenue: 250 * orders,
    discount_total: 50 * orders,
    tax_total: 20 * orders,
    refunded_total: 0,
    cost_of_goods: 120 * orders,
    net_profit: 130 * orders,
  })

  test('the report covers the last 7 days of the hub’s calendar by default, with a row for each day', async () => {
    const { chicago, report } = await openHubs()
    await chicago.sell(sale('2025-11-04T05:59:59Z'))
    await chicago.sell(sale('2025-10-28T05:00:00Z'))
    await chicago.sell(sale('2025-10-28T04:59:59Z'))
    const { from, to, totals, data } = await report('')
    expect({ from, to, totals }).toEqual({ from: '2025-10-28', to: '2025-11-03', totals: sold(2) })
    expect(data.map(({ key, name, total_orders }) => [key, name, total_orders])).toEqual([
      ['2025-10-28', null, 1],
      ['2025-10-29', null, 0],
      ['2025-10-30', null, 0],
      ['2025-10-31', null, 0],
      ['2025-11-01', null, 0],
      ['2025-11-02', null, 0],
      ['2025-11-03', null, 1],
    ])
    expect(data[1]).toEqual({ key: '2025-10-29', name: null, ...NOTHING })
  })

  test('one bound of the range gives seven days, and a range has at most 366 days', async () => {
    const { get, report } = await openHubs()
    expect(await report('from=2025-01-01')).toMatchObject({ from: '2025-01-01', to: '2025-01-07' })
    expect(await report('to=2025-01-07')).toMatchObject({ from: '2025-01-01', to: '2025-01-07' })
    expect((await report('from=2024-01-01&to=2024-12-31')).data).toHaveLength(366)
    const refused = async (query: string) => {
      const { status, json } = await get(query)
      const { detail } = json as { detail: { loc: string[]; type: string }[] }
      return [status, detail[0]!.loc, detail[0]!.type]
    }
    expect(await refused('from=2024-01-01&to=2025-01-01')).toEqual([422, ['query', 'to'], 'value_error'])
    expect(await refused('from=2025-01-02&to=2025-01-01')).toEqual([422, ['query', 'from'], 'value_error'])
    expect((await get('from=2025-02-30')).status).toBe(422)
    expect((await get('from=2025-01-01T00:00:00Z')).status).toBe(422)
    expect((await get('from=9999-12-31')).status).toBe(422)
  })

  test('an hour that the clock shows twice is one row, and a skipped hour is empty', async () => {
    const { chicago, report } = await openHubs()
    for (const when of ['2025-11-02T06:30:00Z', '2025-11-02T07:30:00Z', '2025-03-09T08:30:00Z'])
      await chicago.sell(sale(when))
    const autumn = await report('group_by=hour&from=2025-11-02&to=2025-11-02')
    expect(autumn.data).toHaveLength(24)
    expect(autumn.data[1]).toEqual({ key: '01', name: null, ...sold(2) })
    const spring = await report('group_by=hour&from=2025-03-09&to=2025-03-09')
    expect(spring.data.slice(1, 5).map(({ key, total_orders }) => [key, total_orders])).toEqual([
      ['01', 0],
      ['02', 0],
      ['03', 1],
      ['04', 0],
    ])
  })

  test('weeks are ISO weeks and months are calendar months, cut to the range', async () => {
    const { chicago, report } = await openHubs()
    await chicago.sell(sale('2024-12-30T12:00:00Z'))
    await chicago.sell(sale('2024-12-29T12:00:00Z'))
    const range = 'from=2024-12-29&to=2025-01-06'
    expect((await report(`group_by=week&${range}`)).data.map((row) => [row.key, row.total_orders])).toEqual([
      ['2024-W52', 1],
      ['2025-W01', 1],
      ['2025-W02', 0],
    ])
    expect((await report(`group_by=month&${range}`)).data.map((row) => [row.key, row.total_orders])).toEqual([
      ['2024-12', 2],
      ['2025-01', 0],
    ])
  })

  test('products and categories keep the names of the sale, the best seller first', async () => {
    const { chicago, report, context } = await openHubs()
    await chicago.sell(sale('2025-11-01T12:00:00Z', 1))
    await chicago.sell(sale('2025-11-01T12:00:00Z', 2))
    await chicago.sell(sale('2025-11-01T13:00:00Z', 2))
    await chicago.sell({
      ...sale('2025-11-01T14:00:00Z'),
      lines: [1, 4].map((product) => ({ product, quantity: 1, net: 10, tax: 1, cost: 5 })),
    })
    await context.db.kysely.updateTable('products').set({ name: 'Renamed', category_id: 1 }).execute()
    const rows = async (by: string) =>
      (await report(`group_by=${by}`)).data.map((row) => [
        row.key,
        row.name,
        row.total_orders,
        row.units_sold,
        row.gross_revenue,
      ])
    expect(await rows('product')).toEqual([
      ['000000000002', 'Product 2', 2, 4, 500],
      ['000000000001', 'Product 1', 2, 3, 260],
      ['000000000004', 'Product 4', 1, 1, 10],
    ])
    expect(await rows('category')).toEqual([
      ['Sundries', 'Sundries', 2, 4, 500],
      ['Food', 'Food', 2, 4, 270],
    ])
    expect((await report('group_by=product')).totals).toMatchObject({ total_orders: 4, gross_revenue: 770 })
  })

  test('a product without a category at its sale has an empty key', async () => {
    const { chicago, report, context } = await openHubs()
    const id = await chicago.sell(sale('2025-11-01T12:00:00Z'))
    await context.db.kysely.deleteFrom('sales_days').execute()
    await context.db.kysely.deleteFrom('sales').execute()
    await context.db.kysely.updateTable('order_items').set({ category: null }).execute()
    await chicago.refundPart(id, 0.01)
    expect((await report('group_by=category')).data).toMatchObject([{ key: '', name: '' }])
  })

  test('a partial refund reduces the day of its sale, and a refund in whole leaves only refunded money', async () => {
    const { chicago, report } = await openHubs()
    const [unit, whole, part] = [
      await chicago.sell(sale('2025-10-30T12:00:00Z')),
      await chicago.sell(sale('2025-10-30T12:00:00Z', 2)),
      await chicago.sell(sale('2025-10-31T12:00:00Z')),
    ]
    await chicago.refundUnits(unit, 0, 1)
    await chicago.refundPart(whole, 1)
    await chicago.refundPart(part, 0.1)
    const { totals, data } = await report('')
    expect(data[2]).toEqual({
      key: '2025-10-30',
      name: null,
      total_orders: 1,
      units_sold: 1,
      gross_revenue: 125,
      discount_total: 25,
      tax_total: 10,
      refunded_total: 375,
      cost_of_goods: 60,
      net_profit: 65,
    })
    expect(data[3]).toMatchObject({ total_orders: 1, gross_revenue: 225, tax_total: 18, refunded_total: 25 })
    expect(data[3]).toMatchObject({ units_sold: 2, discount_total: 50 })
    for (const by of ['week', 'month', 'hour', 'product', 'category', 'hub']) {
      const other = await report(`group_by=${by}`)
      expect([by, other.totals]).toEqual([by, totals])
      const sum = (name: 'gross_revenue' | 'refunded_total' | 'tax_total') =>
        other.data.reduce((total, row) => total + row[name], 0)
      expect([by, sum('gross_revenue'), sum('refunded_total'), sum('tax_total')]).toEqual([
        by,
        totals.gross_revenue,
        totals.refunded_total,
        totals.tax_total,
      ])
    }
  })

  test('late money and refused refunds change no figure', async () => {
    const { chicago, report } = await openHubs()
    await chicago.payLate(sale('2025-11-01T12:00:00Z'))
    const id = await chicago.sell(sale('2025-11-01T12:00:00Z'))
    await chicago.refundPart(id, 1)
    await chicago.settle(id, 'failed')
    expect((await report('')).totals).toEqual(sold(1))
  })

  test('an owner reads its own hubs, each in its own time zone, and nothing of another owner', async () => {
    const { chicago, tokyo, report, get, context } = await openHubs()
    await context.db.kysely.updateTable('hubs').set({ owner_id: 1 }).where('id', '=', 2).execute()
    await chicago.sell(sale('2025-11-02T16:00:00Z'))
    const foreign = await tokyo.sell(sale('2025-11-02T16:00:00Z'))
    await context.db.kysely.updateTable('hubs').set({ owner_id: 2 }).where('id', '=', 2).execute()
    expect((await report('')).totals).toEqual(sold(1))
    // Its sale belongs to owner 2, at 01:00 of the third in Tokyo, where it is the fourth now.
    expect(await report('', 2)).toMatchObject({ to: '2025-11-04', totals: sold(1) })
    expect((await report('from=2025-11-03&to=2025-11-03', 2)).totals).toEqual(sold(1))
    expect(foreign).toBeGreaterThan(0)
    expect((await report('group_by=hub')).data).toEqual([{ key: '1', name: 'Hub 1', ...sold(1) }])
    expect(errorOf(await get('hub_id=2')).error.code).toBe('hub_not_found')
  })

  test('after a hub has moved, each owner reads the sales of its own time', async () => {
    const { chicago, report, context } = await openHubs()
    const q = context.db.kysely
    await chicago.sell(sale('2025-11-01T12:00:00Z'))
    const until = at('2025-11-02T00:00:00Z')
    await q.insertInto('former_owners').values({ hub_id: 1, owner_id: 1, since: 0, until }).execute()
    await q.updateTable('hubs').set({ owner_id: 2, owned_since: until }).where('id', '=', 1).execute()
    expect((await report('hub_id=1')).totals).toEqual(sold(1))
    expect((await report('')).totals).toEqual(sold(1))
    expect((await report('hub_id=1', 2)).totals).toEqual(NOTHING)
  })

  test('an owner without sales, and an owner without hubs, have zeros', async () => {
    const { report, context } = await openHubs()
    expect((await report('group_by=product')).data).toEqual([])
    expect((await report('group_by=hub')).data).toEqual([{ key: '1', name: 'Hub 1', ...NOTHING }])
    await context.db.kysely.updateTable('hubs').set({ owner_id: 2 }).execute()
    expect(await report('')).toMatchObject({ totals: NOTHING, to: '2025-11-03' })
  })

  test('the report is CSV on request: key and name, then the figures', async () => {
    const { chicago, get } = await openHubs()
    await chicago.sell(sale('2025-11-03T12:00:00Z'))
    const { json, headers } = await get('from=2025-11-03&group_by=product', 1, 'text/csv')
    expect(headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
    expect(headers.get('Vary')).toBe('Accept')
    expect(json).toBe(
      'key,name,total_orders,units_sold,gross_revenue,discount_total,tax_total,refunded_total,cost_of_goods,net_profit\r\n' +
        '000000000001,Product 1,1,2,250,50,20,0,120,130\r\n',
    )
  })
})
