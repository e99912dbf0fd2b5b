import { sql } from 'kysely'
import { ApiError } from '../../platform/api-error.ts'
import {
  addMonths,
  monthOf,
  monthsOf,
  weekdays,
  weekOf,
  yearOf,
  type Day,
} from '../../platform/calendar/days.ts'
import type { Queries } from '../../platform/store/database.ts'
import { ALL, WHOLE_HUB } from './changes.ts'
import { readTotals } from './totals.ts'

const MONTHS_SHOWN = 12
const CATEGORIES_SHOWN = 100

/** What the reports are of: a hub, on a day of its calendar. */
export interface Scope {
  hubId: number
  today: Day
}

/** Name, units and image of the products that sold most. */
export async function topProducts(
  q: Queries,
  hubId: number,
  limit: number,
): Promise<[name: string, units: number, image: string][]> {
  const rows = await soldProducts(q, hubId)
    .select(['p.name', 't.units', 'p.image_url'])
    .where('t.units', '>', 0)
    .orderBy('t.units', 'desc')
    .orderBy('t.revenue', 'desc')
    .orderBy('p.id')
    .limit(limit)
    .execute()
  return rows.map(({ name, units, image_url }) => [name, units, image_url])
}

export async function topCategories(
  q: Queries,
  hubId: number,
): Promise<{ name: string; revenue_cents: number; units_sold: number }[]> {
  return soldProducts(q, hubId)
    .innerJoin('categories as c', 'c.id', 'p.category_id')
    .select((eb) => [
      'c.name',
      eb.fn.sum<number>('t.revenue').as('revenue_cents'),
      eb.fn.sum<number>('t.units').as('units_sold'),
    ])
    .groupBy(['c.id', 'c.name'])
    .having((eb) => eb(eb.fn.sum('t.units'), '>', 0))
    .orderBy('units_sold', 'desc')
    .orderBy('revenue_cents', 'desc')
    .orderBy('c.id')
    .limit(CATEGORIES_SHOWN)
    .execute()
}

/** As many rows as the hub has had products. */
const soldProducts = (q: Queries, hubId: number) =>
  q
    .selectFrom('sales_totals as t')
    .innerJoin('products as p', 'p.id', 't.product_id')
    .where('t.hub_id', '=', hubId)
    .where('t.period', '=', sql.lit(ALL))
    .where('t.product_id', '>', sql.lit(WHOLE_HUB))

/** Revenue of each day of the current week. */
export async function weeklySales(q: Queries, { hubId, today }: Scope): Promise<[string, number][]> {
  const week = weekOf(today)
  const totals = await readTotals(q, hubId, week)
  return week.map((day, index) => [weekdays[index]!, totals(day).revenue])
}

/** The months of the current year up to now, with what they brought and cost. */
export async function earnings(q: Queries, { hubId, today }: Scope) {
  const months = monthsToDate(today)
  const totals = await readTotals(q, hubId, months)
  const monthly_data = months.map((month) => {
    const { revenue, cost } = totals(month)
    return { month, total_earnings: revenue, total_cost: cost, total_profit: revenue - cost }
  })
  return {
    monthly_data,
    highest_earning: Math.max(...monthly_data.map(({ total_earnings }) => total_earnings)),
    highest_cost: Math.max(...monthly_data.map(({ total_cost }) => total_cost)),
    highest_profit: Math.max(...monthly_data.map(({ total_profit }) => total_profit)),
  }
}

export async function customerGrowth(q: Queries, { hubId, today }: Scope) {
  const months = monthsToDate(today)
  const totals = await readTotals(q, hubId, months)
  return {
    customer_growth: months.map((month) => ({ month, unique_customers: totals(month).customers })),
  }
}

const monthsToDate = (today: Day): string[] =>
  monthsOf(yearOf(today)).filter((month) => month <= monthOf(today))

export async function monthlyComparison(q: Queries, { hubId, today }: Scope) {
  const current = monthsOf(yearOf(today))
  const previous = monthsOf(yearOf(today) - 1)
  const totals = await readTotals(q, hubId, [...current, ...previous])
  const revenue = (month: string): number => totals(month).revenue
  return { current_year: current.map(revenue), previous_year: previous.map(revenue) }
}

export async function netProfit(q: Queries, { hubId, today }: Scope) {
  const month = monthOf(today)
  const { revenue, cost } = (await readTotals(q, hubId, [month]))(month)
  return { gross_revenue: revenue, cost_of_goods: cost, net_profit: revenue - cost }
}

/** The last twelve months of a product, the current one among them. Throws `product_not_found`. */
export async function productMonths(q: Queries, { hubId, today }: Scope, upc: string) {
  const product = await q
    .selectFrom('products')
    .select(['id', 'upc', 'name'])
    .where('hub_id', '=', hubId)
    .where('upc', '=', upc.padStart(12, '0'))
    .executeTakeFirst()
  if (!product) throw new ApiError('product_not_found')
  const months = Array.from({ length: MONTHS_SHOWN }, (_, index) =>
    addMonths(monthOf(today), index + 1 - MONTHS_SHOWN),
  )
  const totals = await readTotals(q, hubId, months, product.id)
  return {
    product_upc: product.upc,
    product_name: product.name,
    monthly_data: months.map((month) => {
      const { units, revenue, cost } = totals(month)
      return {
        month,
        units_sold: units,
        revenue_cents: revenue,
        cost_cents: cost,
        profit_cents: revenue - cost,
      }
    }),
  }
}

/** How many different products a hub sells now. */
export async function countProducts(q: Queries, hubId: number): Promise<number> {
  const { count } = await q
    .selectFrom('products')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', hubId)
    .where('is_active', '=', 1)
    .executeTakeFirstOrThrow()
  return count
}
