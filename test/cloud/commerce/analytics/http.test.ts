import { expect, test } from 'vitest'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { SalesOverview } from '../../../../protocol/contract/owner-analytics.ts'
import { openCloud } from '../../../world/cloud.ts'
import { openBooks } from './support/books.ts'

const at = (text: string) => Date.parse(text)

/** A hub in Chicago, on Thursday 2025-11-06, at 15:30 local time. */
async function openHub() {
  const app = await openCloud({ handlersOf: analyticsHandlers })
  app.runtime.clock.advance(at('2025-11-06T21:30:00Z') - app.runtime.clock.now())
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

test('a hub without sales has zeros everywhere, and empty lists of best sellers', async () => {
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

test('days are the hub’s local days: late in its evening UTC has the next day', async () => {
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

test('the overview compares each period to date with the same part of the period before, between the hub’s midnights', async () => {
  const { get, sell } = await openHub()
  await sell('2025-11-06T18:00:00Z', 301)
  await sell('2025-11-06T19:00:00Z', 100, 2)
  await sell('2025-11-05T21:30:00Z', 300)
  await sell('2025-11-05T21:30:00.001Z', 50)
  await sell('2025-10-30T20:30:00Z', 200)
  await sell('2025-10-30T20:30:00.001Z', 400)
  await sell('2025-10-06T20:30:00Z', 70)
  await sell('2025-10-06T20:30:00.001Z', 1000)
  await sell('2024-11-06T21:30:00Z', 999)
  await sell('2024-11-06T21:30:00.001Z', 5000)
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
      gross_revenue: 751,
      total_orders: 4,
      units_sold: 8,
      average_order_value: 188,
      // Summer time: the same time of day is an hour earlier.
      previous: { gross_revenue: 200, total_orders: 1, units_sold: 2, average_order_value: 200 },
      change_pct: 275.5,
    },
    monthly: {
      // Clocks changed on the second: the month starts in summer time.
      period_start: '2025-11-01T05:00:00.000Z',
      period_end: '2025-12-01T06:00:00.000Z',
      gross_revenue: 751,
      total_orders: 4,
      units_sold: 8,
      average_order_value: 188,
      previous: { gross_revenue: 70, total_orders: 1, units_sold: 2, average_order_value: 70 },
      change_pct: 972.86,
    },
    yearly: {
      period_start: '2025-01-01T06:00:00.000Z',
      period_end: '2026-01-01T06:00:00.000Z',
      gross_revenue: 2421,
      total_orders: 8,
      units_sold: 16,
      average_order_value: 303,
      previous: { gross_revenue: 999, total_orders: 1, units_sold: 2, average_order_value: 999 },
      change_pct: 142.34,
    },
  })
})

test('the overview reports no change for steady sales, on any day and at any time', async () => {
  const { get, books, runtime } = await openHub()
  await books.moveHub('UTC')
  let sold = at('2025-10-01T09:00:00Z')
  const changesAt = async (text: string) => {
    for (; sold <= at(text); sold += 43_200_000)
      await books.sell({
        at: sold,
        user: 1,
        processor: 'sandbox',
        lines: [{ product: 1, quantity: 1, net: 100, tax: 0, cost: 20 }],
      })
    runtime.clock.advance(at(text) - runtime.clock.now())
    const { daily, weekly, monthly } = SalesOverview.parse((await get('get_sales_overview/?hub_id=1')).json)
    return [daily, weekly, monthly].map(({ change_pct }) => change_pct)
  }
  expect(await changesAt('2025-11-07T08:00:00Z')).toEqual([null, 0, 0])
  expect(await changesAt('2025-11-21T12:00:00Z')).toEqual([0, 0, 0])
  // November has no 31st: its 60 sales are compared with the 61 of December up to noon.
  expect(await changesAt('2025-12-31T12:00:00Z')).toEqual([0, 0, 1.67])
})

test('a fully refunded order is neither counted nor averaged, and a partly refunded one is', async () => {
  const { get, books, sell } = await openHub()
  await sell('2025-11-06T18:00:00Z', 300)
  const whole = await sell('2025-11-06T18:00:00Z', 500, 2)
  const part = await sell('2025-11-06T18:00:00Z', 500, 3)
  const figures = async () => {
    const { daily } = SalesOverview.parse((await get('get_sales_overview/?hub_id=1')).json)
    return {
      ...((await get('total_orders/?hub_id=1')).json as object),
      ...((await get('total_customers/?hub_id=1')).json as object),
      revenue: daily.gross_revenue,
      average: daily.average_order_value,
    }
  }
  await books.refundPart(whole, 1)
  await books.refundUnits(part, 0, 1)
  const expected = { total_orders: 2, total_customers: 2, revenue: 550, average: 275 }
  expect(await figures()).toEqual(expected)
  await books.settle(whole, 'failed')
  expect(await figures()).toEqual({ total_orders: 3, total_customers: 3, revenue: 1050, average: 350 })
})

test('the months of a year end with the present month, and those of a product go back a year', async () => {
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

test('the list of best sellers has the configured length', async () => {
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

test('revenue may be requested 90 times a minute, and every other report 360 times', async () => {
  const { get } = await openHub()
  expect((await get('gross_revenue?hub_id=1')).headers.get('X-RateLimit-Limit')).toBe('90')
  expect((await get('total_orders/?hub_id=1')).headers.get('X-RateLimit-Limit')).toBe('360')
})
