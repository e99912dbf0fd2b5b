import { expect, test } from 'vitest'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { SalesOverview } from '../../../../protocol/contract/owner-analytics.ts'
import { errorOf, testApp } from '../../support/app.ts'
import { openBooks } from './support/books.ts'

const at = (text: string) => Date.parse(text)

/** Chicago, on a Thursday: 2025-11-06, 15:30 there. */
async function openHub() {
  const app = await testApp({ handlersOf: analyticsHandlers })
  app.runtime.advance(at('2025-11-06T21:30:00Z') - app.runtime.clock.now())
  const books = await openBooks(app.context, 'America/Chicago')
  const key = await app.key(['analytics:read'])
  return {
    ...app,
    books,
    get: (path: string) => app.call('GET', `/api/v1/owners/${path}`, { key }),
    sell: (when: string, net: number, user = 1) =>
      books.sell({
        at: at(when),
        user,
        processor: 'sandbox',
        lines: [{ product: 1, quantity: 2, net, tax: 10, cost: 20 }],
      }),
  }
}

test('a hub that has sold nothing has zeros everywhere, and empty lists of what sold', async () => {
  const { get } = await openHub()
  expect((await get('gross_revenue/?hub_id=1')).json).toEqual({ gross_revenue: 0 })
  expect((await get('top_products/?hub_id=1')).json).toEqual([])
  expect((await get('hubs/1/top-categories')).json).toEqual([])
  expect((await get('monthly_sales_comparison/?hub_id=1')).json).toEqual({
    current_year: Array<number>(12).fill(0),
    previous_year: Array<number>(12).fill(0),
  })
  const { daily } = SalesOverview.parse((await get('get_sales_overview/?hub_id=1')).json)
  expect(daily).toMatchObject({ average_order_value: 0, change_pct: null, previous: { total_orders: 0 } })
})

test('days are the hub’s: late in the evening there it is the next day in UTC', async () => {
  const { get, sell } = await openHub()
  await sell('2025-11-06T05:59:59Z', 100)
  await sell('2025-11-06T06:00:00Z', 30)
  await sell('2025-11-03T06:00:00Z', 500)
  await sell('2025-11-03T05:59:59Z', 7000)
  expect((await get('gross_revenue/?hub_id=1&timeframe=daily')).json).toEqual({ gross_revenue: 30 })
  expect((await get('gross_revenue/?hub_id=1&timeframe=weekly')).json).toEqual({ gross_revenue: 630 })
  expect((await get('gross_revenue/?hub_id=1&timeframe=monthly')).json).toEqual({ gross_revenue: 7630 })
  expect((await get('weekly_sales_breakdown/?hub_id=1')).json).toEqual([
    ['Monday', 500],
    ['Tuesday', 0],
    ['Wednesday', 100],
    ['Thursday', 30],
    ['Friday', 0],
    ['Saturday', 0],
    ['Sunday', 0],
  ])
})

test('the overview: each period to date beside the whole one before, between the hub’s midnights', async () => {
  const { get, sell } = await openHub()
  await sell('2025-11-06T18:00:00Z', 301)
  await sell('2025-11-06T19:00:00Z', 100, 2)
  await sell('2025-11-05T23:00:00Z', 300)
  await sell('2025-10-31T23:00:00Z', 200)
  await sell('2024-06-01T12:00:00Z', 999)
  const overview = SalesOverview.parse((await get('get_sales_overview/?hub_id=1')).json)
  expect(overview).toEqual({
    hub_id: 1,
    timezone: 'America/Chicago',
    generated_at: '2025-11-06T21:30:00.000Z',
    daily: {
      period_start: '2025-11-06T06:00:00.000Z',
      period_end: '2025-11-07T06:00:00.000Z',
      gross_revenue: 401,
      total_orders: 2,
      units_sold: 4,
      average_order_value: 201,
      previous: { gross_revenue: 300, total_orders: 1, units_sold: 2, average_order_value: 300 },
      change_pct: 33.67,
    },
    weekly: {
      period_start: '2025-11-03T06:00:00.000Z',
      period_end: '2025-11-10T06:00:00.000Z',
      gross_revenue: 701,
      total_orders: 3,
      units_sold: 6,
      average_order_value: 234,
      previous: { gross_revenue: 200, total_orders: 1, units_sold: 2, average_order_value: 200 },
      change_pct: 250.5,
    },
    monthly: {
      // Clocks changed on the second: the month begins in summer time.
      period_start: '2025-11-01T05:00:00.000Z',
      period_end: '2025-12-01T06:00:00.000Z',
      gross_revenue: 701,
      total_orders: 3,
      units_sold: 6,
      average_order_value: 234,
      previous: { gross_revenue: 200, total_orders: 1, units_sold: 2, average_order_value: 200 },
      change_pct: 250.5,
    },
    yearly: {
      period_start: '2025-01-01T06:00:00.000Z',
      period_end: '2026-01-01T06:00:00.000Z',
      gross_revenue: 901,
      total_orders: 4,
      units_sold: 8,
      average_order_value: 225,
      previous: { gross_revenue: 999, total_orders: 1, units_sold: 2, average_order_value: 999 },
      change_pct: -9.81,
    },
  })
})

test('months of the year go up to now, those of a product back a year', async () => {
  const { get, sell } = await openHub()
  await sell('2025-02-10T12:00:00Z', 500)
  await sell('2025-11-01T12:00:00Z', 30)
  const { json } = await get('earnings-and-profits-ytd/?hub_id=1')
  expect(json).toMatchObject({ highest_earning: 500, highest_cost: 40, highest_profit: 460 })
  const { monthly_data } = json as { monthly_data: { month: string }[] }
  expect(monthly_data.map(({ month }) => month)).toEqual(
    ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10', '11'].map((month) => `2025-${month}`),
  )
  expect(monthly_data[10]).toEqual({
    month: '2025-11',
    total_earnings: 30,
    total_cost: 40,
    total_profit: -10,
  })
  const product = (await get('monthly_sales_breakdown_for_product/?hub_id=1&product_upc=1')).json
  const months = (product as { monthly_data: { month: string }[] }).monthly_data
  expect([months[0]!.month, months.at(-1), months.length]).toEqual([
    '2024-12',
    { month: '2025-11', units_sold: 2, revenue_cents: 30, cost_cents: 40, profit_cents: -10 },
    12,
  ])
  expect(product).toMatchObject({ product_upc: '000000000001', product_name: 'Product 1' })
})

test('the list of what sold most is as long as the operator says', async () => {
  const { get, books, context } = await openHub()
  for (const product of [1, 2, 3])
    await books.sell({
      at: at('2025-11-01T12:00:00Z'),
      user: 1,
      processor: 'wallet',
      lines: [{ product, quantity: product, net: 100, tax: 0, cost: 1 }],
    })
  context.settings.topProducts = 2
  expect((await get('top_products/?hub_id=1')).json).toEqual([
    ['Product 3', 3, 'https://pictures.example/3.webp'],
    ['Product 2', 2, 'https://pictures.example/2.webp'],
  ])
})

test('a product that the hub does not have is not found; a time frame that nobody knows is 422', async () => {
  const { get } = await openHub()
  const absent = await get('monthly_sales_breakdown_for_product/?hub_id=1&product_upc=99')
  expect([absent.status, errorOf(absent).error.code]).toEqual([404, 'product_not_found'])
  const wrong = await get('gross_revenue/?hub_id=1&timeframe=yearly')
  expect(wrong.status).toBe(422)
  expect(errorOf(wrong).detail).toMatchObject([{ loc: ['query', 'timeframe'], type: 'literal_error' }])
})

test('revenue may be asked for 90 times a minute, everything else 360 times', async () => {
  const { get } = await openHub()
  expect((await get('gross_revenue?hub_id=1')).headers.get('X-RateLimit-Limit')).toBe('90')
  expect((await get('total_orders/?hub_id=1')).headers.get('X-RateLimit-Limit')).toBe('360')
})
