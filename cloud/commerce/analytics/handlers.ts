import { localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { imageUrl } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { ALL } from './changes.ts'
import { salesOverview } from './overview.ts'
import { periodOf } from './periods.ts'
import {
  countProducts,
  customerGrowth,
  earnings,
  monthlyComparison,
  netProfit,
  productMonths,
  topCategories,
  topProducts,
  weeklySales,
  type Scope,
} from './reports.ts'
import { addUp, readTotals } from './totals.ts'

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

/** O §4.4. Everything is read from summaries (`sale.ts` says what they count): no call looks at orders. */
export function analyticsHandlers(
  { db, runtime, settings }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<AnalyticsRoute> {
  const q = db.kysely

  const calendarOf = (hubId: number): Promise<{ id: number; timezone: string }> =>
    q.selectFrom('hubs').select(['id', 'timezone']).where('id', '=', hubId).executeTakeFirstOrThrow()

  async function scopeOf({ hub_id }: { hub_id: number }): Promise<Scope> {
    const { timezone } = await calendarOf(hub_id)
    return { hubId: hub_id, today: localDay(timezone, runtime.clock.now()) }
  }
  const allTime = async (hubId: number) => (await readTotals(q, hubId, [ALL]))(ALL)

  return {
    async 'owner.analytics.gross_revenue'({ query }) {
      const { hub_id, timeframe } = query
      if (timeframe === undefined) return { gross_revenue: (await allTime(hub_id)).revenue }
      const { parts } = periodOf[timeframe]((await scopeOf(query)).today)
      const totals = await readTotals(q, hub_id, parts)
      return { gross_revenue: addUp(parts.map(totals)).revenue }
    },
    'owner.analytics.total_orders': async ({ query }) => ({
      total_orders: (await allTime(query.hub_id)).orders,
    }),
    'owner.analytics.total_products': async ({ query }) => ({
      total_products: await countProducts(q, query.hub_id),
    }),
    'owner.analytics.total_customers': async ({ query }) => ({
      total_customers: (await allTime(query.hub_id)).customers,
    }),
    async 'owner.analytics.top_products'({ query }) {
      const sold = await topProducts(q, query.hub_id, settings.topProducts)
      return sold.map(([name, units, image]) => [name, units, imageUrl(addressOf, image)])
    },
    'owner.analytics.top_categories': ({ params }) => topCategories(q, params.hub_id),
    'owner.analytics.weekly_sales': async ({ query }) => weeklySales(q, await scopeOf(query)),
    'owner.analytics.earnings': async ({ query }) => earnings(q, await scopeOf(query)),
    'owner.analytics.customer_growth': async ({ query }) => customerGrowth(q, await scopeOf(query)),
    'owner.analytics.monthly_comparison': async ({ query }) => monthlyComparison(q, await scopeOf(query)),
    'owner.analytics.overview': async ({ query }) =>
      salesOverview(q, await calendarOf(query.hub_id), runtime.clock.now()),
    'owner.analytics.net_profit': async ({ query }) => netProfit(q, await scopeOf(query)),
    'owner.analytics.product_months': async ({ query }) =>
      productMonths(q, await scopeOf(query), query.product_upc),
  }
}
