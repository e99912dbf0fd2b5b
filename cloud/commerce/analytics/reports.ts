import { sql } from 'kysely'
import { upcDigits } from '../../../protocol/model/upc.ts'
import { ApiError } from '../../platform/api-error.ts'
import {
  addMonths,
  type Day,
  monthOf,
  monthsOf,
  weekdays,
  weekOf,
  yearOf,
} from '../../platform/calendar/days.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { reply, type HandlerInput, type Handlers } from '../../platform/http/handler.ts'
import { imageUrl } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries } from '../../platform/store/database.ts'
import { ALL, WHOLE_HUB } from './sale.ts'
import { areIncomplete, INCOMPLETE, addUp, type Book, periodOf, readTotals, salesOverview } from './totals.ts'

type AnalyticsRoute = `owner.analytics.${
  | 'gross_revenue'
  | 'total_orders'
  | 'total_products'
  | 'total_customers'
  | 'top_products'
  | 'top_categories'
  | 'weekly_sales'
  | 'earnings'
  | 'customer_growth'
  | 'monthly_comparison'
  | 'overview'
  | 'net_profit'
  | 'product_months'}`

/** O §4.4. All values come from summaries (`sale.ts` defines what they count): no call reads orders. */
export function analyticsHandlers(
  { db, runtime, settings }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<AnalyticsRoute> {
  const q = db.kysely

  /** The records of the caller's owner at the hub; for callers without an owner those of the present owner. */
  async function bookOf(hubId: number, { ownerId }: Pick<OwnerCredential, 'ownerId'>): Promise<HubBook> {
    const hub = await q
      .selectFrom('hubs')
      .select(['owner_id', 'timezone'])
      .where('id', '=', hubId)
      .executeTakeFirstOrThrow()
    const isCurrent = ownerId === null || ownerId === hub.owner_id
    return { hubId, ownerId: ownerId ?? hub.owner_id, timezone: hub.timezone, isCurrent }
  }

  async function scopeOf(input: Input): Promise<Scope> {
    const book = await bookOf(input.query.hub_id, input.credential)
    return { ...book, today: localDay(book.timezone, runtime.clock.now()) }
  }
  const allTime = async ({ query, credential }: Input) =>
    (await readTotals(q, await bookOf(query.hub_id, credential), [ALL]))(ALL)

  const handlers: Handlers<AnalyticsRoute> = {
    async 'owner.analytics.gross_revenue'(input) {
      const { timeframe } = input.query
      if (timeframe === undefined) return { gross_revenue: (await allTime(input)).revenue }
      const scope = await scopeOf(input)
      const { parts } = periodOf[timeframe](scope.today)
      const totals = await readTotals(q, scope, parts)
      return { gross_revenue: addUp(parts.map(totals)).revenue }
    },
    'owner.analytics.total_orders': async (input) => ({ total_orders: (await allTime(input)).orders }),
    async 'owner.analytics.total_products'({ query, credential }) {
      const { isCurrent } = await bookOf(query.hub_id, credential)
      return { total_products: isCurrent ? await countProducts(q, query.hub_id) : 0 }
    },
    'owner.analytics.total_customers': async (input) => ({
      total_customers: (await allTime(input)).customers,
    }),
    async 'owner.analytics.top_products'({ query, credential }) {
      const sold = await topProducts(q, await bookOf(query.hub_id, credential), settings.topProducts)
      return sold.map(([name, units, image]) => [name, units, imageUrl(addressOf, image)])
    },
    'owner.analytics.top_categories': async ({ params, credential }) =>
      topCategories(q, await bookOf(params.hub_id, credential)),
    'owner.analytics.weekly_sales': async (input) => weeklySales(q, await scopeOf(input)),
    'owner.analytics.earnings': async (input) => earnings(q, await scopeOf(input)),
    'owner.analytics.customer_growth': async (input) => customerGrowth(q, await scopeOf(input)),
    'owner.analytics.monthly_comparison': async (input) => monthlyComparison(q, await scopeOf(input)),
    'owner.analytics.overview': async ({ query, credential }) =>
      salesOverview(q, await bookOf(query.hub_id, credential), runtime.clock.now()),
    'owner.analytics.net_profit': async (input) => netProfit(q, await scopeOf(input)),
    'owner.analytics.product_months': async (input) =>
      productMonths(q, await scopeOf(input), input.query.product_upc),
  }
  return sayingIncomplete(q, handlers)
}

/** The common parameters of most reports. */
interface Input {
  query: { hub_id: number }
  credential: Pick<OwnerCredential, 'ownerId'>
}

interface HubBook extends Book {
  timezone: string
  /** Whether the owner still has the hub. */
  isCurrent: boolean
}

type AnyReport = (input: HandlerInput<Route>) => Promise<unknown>

function sayingIncomplete(q: Queries, handlers: Handlers<AnalyticsRoute>): Handlers<AnalyticsRoute> {
  const entries = Object.entries(handlers as unknown as Record<string, AnyReport>).map(
    ([id, report]): [string, AnyReport] => [
      id,
      async (input) => {
        const { query, params } = input as unknown as Record<
          'query' | 'params',
          { hub_id?: number } | undefined
        >
        const body = await report(input)
        const hubId = (query?.hub_id ?? params?.hub_id)!
        return (await areIncomplete(q, [hubId])) ? reply(body, { headers: INCOMPLETE }) : body
      },
    ],
  )
  return Object.fromEntries(entries) as unknown as Handlers<AnalyticsRoute>
}

const MONTHS_SHOWN = 12
const CATEGORIES_SHOWN = 100

/** The scope of a report: a hub under an owner, on a day of the hub's calendar. */
interface Scope extends Book {
  today: Day
}

/** Name, units and image of the best-selling products. */
async function topProducts(
  q: Queries,
  book: Book,
  limit: number,
): Promise<[name: string, units: number, image: string][]> {
  const rows = await soldProducts(q, book)
    .select(['p.name', 't.units', 'p.image_url'])
    .where('t.units', '>', 0)
    .orderBy('t.units', 'desc')
    .orderBy('t.revenue', 'desc')
    .orderBy('p.id')
    .limit(limit)
    .execute()
  return rows.map(({ name, units, image_url }) => [name, units, image_url])
}

async function topCategories(
  q: Queries,
  book: Book,
): Promise<{ name: string; revenue_cents: number; units_sold: number }[]> {
  return soldProducts(q, book)
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

/** One row for each product that the hub has ever sold. */
const soldProducts = (q: Queries, { hubId, ownerId }: Book) =>
  q
    .selectFrom('sales_totals as t')
    .innerJoin('products as p', 'p.id', 't.product_id')
    .where('t.hub_id', '=', hubId)
    .where('t.owner_id', '=', ownerId)
    .where('t.period', '=', sql.lit(ALL))
    .where('t.product_id', '>', sql.lit(WHOLE_HUB))

/** Revenue of each day of the current week. */
async function weeklySales(q: Queries, { today, ...book }: Scope): Promise<[string, number][]> {
  const week = weekOf(today)
  const totals = await readTotals(q, book, week)
  return week.map((day, index) => [weekdays[index]!, totals(day).revenue])
}

/** The months of the current year up to now, with their revenue and cost. */
async function earnings(q: Queries, { today, ...book }: Scope) {
  const months = monthsToDate(today)
  const totals = await readTotals(q, book, months)
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

async function customerGrowth(q: Queries, { today, ...book }: Scope) {
  const months = monthsToDate(today)
  const totals = await readTotals(q, book, months)
  return {
    customer_growth: months.map((month) => ({ month, unique_customers: totals(month).customers })),
  }
}

const monthsToDate = (today: Day): string[] =>
  monthsOf(yearOf(today)).filter((month) => month <= monthOf(today))

async function monthlyComparison(q: Queries, { today, ...book }: Scope) {
  const current = monthsOf(yearOf(today))
  const previous = monthsOf(yearOf(today) - 1)
  const totals = await readTotals(q, book, [...current, ...previous])
  const revenue = (month: string): number => totals(month).revenue
  return { current_year: current.map(revenue), previous_year: previous.map(revenue) }
}

async function netProfit(q: Queries, { today, ...book }: Scope) {
  const month = monthOf(today)
  const { revenue, cost } = (await readTotals(q, book, [month]))(month)
  return { gross_revenue: revenue, cost_of_goods: cost, net_profit: revenue - cost }
}

/** The last twelve months of a product, including the current one. Throws `product_not_found`. */
async function productMonths(q: Queries, { today, ...book }: Scope, upc: string) {
  const product = await q
    .selectFrom('products')
    .select(['id', 'upc', 'name'])
    .where('hub_id', '=', book.hubId)
    .where('upc', '=', upcDigits(upc) ?? upc)
    .executeTakeFirst()
  if (!product) throw new ApiError('product_not_found')
  const months = Array.from({ length: MONTHS_SHOWN }, (_, index) =>
    addMonths(monthOf(today), index + 1 - MONTHS_SHOWN),
  )
  const totals = await readTotals(q, book, months, product.id)
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
async function countProducts(q: Queries, hubId: number): Promise<number> {
  const { count } = await q
    .selectFrom('products')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', hubId)
    .where('is_active', '=', 1)
    .executeTakeFirstOrThrow()
  return count
}
