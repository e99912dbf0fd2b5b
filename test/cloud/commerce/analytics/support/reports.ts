import { recountSales, type CountedLine } from '../../../../invariants/recount.ts'
import type { CloudDatabase } from '../../../../../cloud/platform/store/database.ts'

const HUB = 1

/**
 * Every answer of the analytics by a plain recount of the books, by path and query. Dates are only compared
 * as text.
 */
export async function recountReports(
  { kysely: q }: CloudDatabase,
  now: number,
  topProducts: number,
): Promise<Record<string, unknown>> {
  const { timezone } = await q
    .selectFrom('hubs')
    .select('timezone')
    .where('id', '=', HUB)
    .executeTakeFirstOrThrow()
  const products = await q.selectFrom('products').selectAll().where('hub_id', '=', HUB).execute()
  const categories = await q.selectFrom('categories').selectAll().execute()
  const lines = recountSales({
    timezone,
    orders: await q.selectFrom('orders').selectAll().where('hub_id', '=', HUB).execute(),
    items: await q.selectFrom('order_items').selectAll().execute(),
    payments: await q.selectFrom('payments').selectAll().execute(),
    refunds: await q.selectFrom('refunds').selectAll().execute(),
  })
  const today = new Date(now).toLocaleString('sv-SE', { timeZone: timezone }).slice(0, 10)
  const [year, month] = [today.slice(0, 4), today.slice(0, 7)]
  const within = (days: readonly string[]) => lines.filter(({ day }) => days.includes(day))
  const begins = (text: string) => lines.filter(({ day }) => day.startsWith(text))
  const until = (day: string) => {
    const end = endOf(day, now, timezone)
    return lines.filter((line) => line.day === day && line.at < end)
  }
  /** Sales from a day on, up to the present time on another day. */
  const stretch = (from: string, last: string) => [
    ...lines.filter(({ day }) => from <= day && day < last),
    ...(isDay(last) ? until(last) : []),
  ]
  const week = weekAround(today)
  const months = twelve(year).filter((one) => one <= month)
  const lastMonth = shift(`${month}-01`, -1).slice(0, 7)
  const lastYear = String(Number(year) - 1)

  const ofProduct = products.map((product) => ({
    product,
    own: lines.filter(({ productId }) => productId === product.id),
  }))
  const ofCategory = categories.map((category) => ({
    category,
    own: ofProduct.filter(({ product }) => product.category_id === category.id).flatMap(({ own }) => own),
  }))
  const monthly_data = months.map((one) => {
    const { revenue, cost } = total(begins(one))
    return { month: one, total_earnings: revenue, total_cost: cost, total_profit: revenue - cost }
  })
  const overview = (current: CountedLine[], previous: CountedLine[]) => {
    const [is, was] = [total(current).revenue, total(previous).revenue]
    return {
      ...figures(current),
      previous: figures(previous),
      change_pct: was > 0 ? Math.round((10_000 * (is - was)) / was) / 100 : null,
    }
  }
  const lastMonths = Array.from({ length: 12 }, (_, back) => monthsBack(month, 11 - back))

  return {
    'gross_revenue/?hub_id=1': { gross_revenue: total(lines).revenue },
    'gross_revenue/?hub_id=1&timeframe=daily': { gross_revenue: total(within([today])).revenue },
    'gross_revenue/?hub_id=1&timeframe=weekly': { gross_revenue: total(within(week)).revenue },
    'gross_revenue/?hub_id=1&timeframe=monthly': { gross_revenue: total(begins(month)).revenue },
    'total_orders/?hub_id=1': { total_orders: total(lines).orders },
    'total_products/?hub_id=1': { total_products: products.filter((p) => p.is_active === 1).length },
    'total_customers/?hub_id=1': { total_customers: customers(lines) },
    'top_products/?hub_id=1': ofProduct
      .map(({ product, own }) => ({ product, ...total(own) }))
      .filter(({ units }) => units > 0)
      .toSorted((a, b) => b.units - a.units || b.revenue - a.revenue || a.product.id - b.product.id)
      .slice(0, topProducts)
      .map(({ product, units }) => [product.name, units, product.image_url]),
    'hubs/1/top-categories': ofCategory
      .map(({ category, own }) => ({ category, ...total(own) }))
      .filter(({ units }) => units > 0)
      .toSorted((a, b) => b.units - a.units || b.revenue - a.revenue || a.category.id - b.category.id)
      .map(({ category, units, revenue }) => ({
        name: category.name,
        revenue_cents: revenue,
        units_sold: units,
      })),
    'weekly_sales_breakdown/?hub_id=1': [
      'Monday',
      'Tuesday',
      'Wednesday',
      'Thursday',
      'Friday',
      'Saturday',
      'Sunday',
    ].map((name, index) => [name, total(within([week[index]!])).revenue]),
    'earnings-and-profits-ytd/?hub_id=1': {
      monthly_data,
      highest_earning: Math.max(...monthly_data.map((one) => one.total_earnings)),
      highest_cost: Math.max(...monthly_data.map((one) => one.total_cost)),
      highest_profit: Math.max(...monthly_data.map((one) => one.total_profit)),
    },
    'customer-growth/?hub_id=1': {
      customer_growth: months.map((one) => ({ month: one, unique_customers: customers(begins(one)) })),
    },
    'monthly_sales_comparison/?hub_id=1': {
      current_year: twelve(year).map((one) => total(begins(one)).revenue),
      previous_year: twelve(lastYear).map((one) => total(begins(one)).revenue),
    },
    'get_sales_overview/?hub_id=1': {
      hub_id: HUB,
      timezone,
      generated_at: new Date(now).toISOString(),
      daily: overview(within([today]), until(shift(today, -1))),
      weekly: overview(within(week), stretch(shift(week[0]!, -7), shift(today, -7))),
      monthly: overview(begins(month), stretch(`${lastMonth}-01`, `${lastMonth}${today.slice(7)}`)),
      yearly: overview(begins(`${year}-`), stretch(`${lastYear}-01-01`, `${lastYear}${today.slice(4)}`)),
    },
    'monthly_net_profit_breakdown/?hub_id=1': (() => {
      const { revenue, cost } = total(begins(month))
      return { gross_revenue: revenue, cost_of_goods: cost, net_profit: revenue - cost }
    })(),
    ...Object.fromEntries(
      ofProduct.map(({ product, own }) => [
        `monthly_sales_breakdown_for_product/?hub_id=1&product_upc=${product.upc}`,
        {
          product_upc: product.upc,
          product_name: product.name,
          monthly_data: lastMonths.map((one) => {
            const { units, revenue, cost } = total(own.filter(({ day }) => day.startsWith(one)))
            return {
              month: one,
              units_sold: units,
              revenue_cents: revenue,
              cost_cents: cost,
              profit_cents: revenue - cost,
            }
          }),
        },
      ]),
    ),
  }
}

/** February has no 30th. A text of an invalid day sorts after the days of its month. */
const isDay = (text: string): boolean => shift(text.slice(0, 7) + '-01', Number(text.slice(8)) - 1) === text

/**
 * The first instant of a day at which its clock shows a later time than `now` does; searched minute by
 * minute.
 */
function endOf(day: string, now: number, timeZone: string): number {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  const sought = `${day} ${clock.format(now).slice(11)}`
  let at = Date.parse(`${day}T00:00:00Z`) - 15 * 3_600_000
  while (clock.format(at) < sought) at += 60_000
  return clock.format(at) === sought ? at + (now % 60_000) + 1 : at
}

function total(lines: readonly CountedLine[]) {
  let [units, revenue, cost] = [0, 0, 0]
  for (const line of lines) {
    units += line.units
    revenue += line.revenue
    cost += line.cost
  }
  return { units, revenue, cost, orders: new Set(lines.map(({ orderId }) => orderId)).size }
}

function figures(lines: readonly CountedLine[]) {
  const { units, revenue, orders } = total(lines)
  return {
    gross_revenue: revenue,
    total_orders: orders,
    units_sold: units,
    average_order_value: orders === 0 ? 0 : Math.floor((2 * revenue + orders) / (2 * orders)),
  }
}

const customers = (lines: readonly CountedLine[]): number => new Set(lines.map(({ userId }) => userId)).size

/** From noon to noon, without a change of clocks in between. */
const shift = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T12:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)

function weekAround(day: string): string[] {
  let monday = day
  while (
    new Date(`${monday}T12:00:00Z`).toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' }) !==
    'Monday'
  )
    monday = shift(monday, -1)
  return Array.from({ length: 7 }, (_, index) => shift(monday, index))
}

const twelve = (year: string): string[] =>
  ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10', '11', '12'].map((month) => `${year}-${month}`)

function monthsBack(month: string, count: number): string {
  let day = `${month}-01`
  for (let step = 0; step < count; step += 1) day = `${shift(day, -1).slice(0, 7)}-01`
  return day.slice(0, 7)
}
