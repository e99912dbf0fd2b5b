import { z } from 'zod'
import { Cents, Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `YYYY-MM` */
const Month = z.string().regex(/^\d{4}-\d{2}$/)
const Count = z.int()

/** Name, units, image. */
const TopProduct = z.tuple([z.string(), Count, z.string()]).meta({ id: 'TopProduct' })
/** Day of the week, revenue. */
const DaySales = z.tuple([z.string(), Cents]).meta({ id: 'DaySales' })

const Figures = z.object({
  gross_revenue: Cents,
  total_orders: Count,
  units_sold: Count,
  /** `gross_revenue` an order of `total_orders`, in cents, rounded half up; 0 without orders. */
  average_order_value: Cents,
})

const OverviewPeriod = Figures.extend({
  /** The first instant of the period, and of the one after it. */
  period_start: Timestamp,
  period_end: Timestamp,
  /** The same stretch of the period before. */
  previous: Figures,
  /** By how much revenue differs from that of the same stretch, in percent; null where that was nothing. */
  change_pct: z.number().nullable(),
})

export const SalesOverview = z
  .object({
    hub_id: Id,
    timezone: z.string(),
    generated_at: Timestamp,
    daily: OverviewPeriod,
    weekly: OverviewPeriod,
    monthly: OverviewPeriod,
    yearly: OverviewPeriod,
  })
  .meta({ id: 'SalesOverview' })
export type SalesOverview = z.infer<typeof SalesOverview>

const shared = {
  interface: 'owner',
  headers: ['X-Incomplete'],
  auth: { kind: 'api', scope: 'analytics:read' },
  rate: 'standard',
  hub: 'hub_id',
  tag: 'Analytics',
} as const
const query = z.object({ hub_id: Id })

const counted =
  'Paid orders count on the day of their payment in the hub’s time zone, unless they were refunded in whole. Revenue is their discounted line totals without tax, less refunds; units and cost leave refunded units out. A refund counts against the day of its sale.'

/** O §4.4. */
export const ownerAnalyticsRoutes = defineRoutes(shared, {
  'owner.analytics.gross_revenue': {
    at: 'GET /owners/gross_revenue/',
    rate: 'low',
    query: z.object({ hub_id: Id, timeframe: z.enum(['daily', 'weekly', 'monthly']).optional() }),
    response: z.object({ gross_revenue: Cents }),
    summary: 'Revenue of the current day, ISO week or month to date, or of all time',
    description: counted,
    examples: { response: { gross_revenue: 128_450 } },
  },
  'owner.analytics.total_orders': {
    at: 'GET /owners/total_orders/',
    query,
    response: z.object({ total_orders: Count }),
    summary: 'How many orders were paid and not refunded in whole',
    description:
      'They are the orders that `gross_revenue` is of. One that was refunded in part counts; so does one whose refund failed, again.',
    examples: { response: { total_orders: 412 } },
  },
  'owner.analytics.total_products': {
    at: 'GET /owners/total_products/',
    query,
    response: z.object({ total_products: Count }),
    summary: 'How many different products the hub sells',
    examples: { response: { total_products: 64 } },
  },
  'owner.analytics.total_customers': {
    at: 'GET /owners/total_customers/',
    query,
    response: z.object({ total_customers: Count }),
    summary: 'How many different customers have paid for an order that was not refunded in whole',
    examples: { response: { total_customers: 117 } },
  },
  'owner.analytics.top_products': {
    at: 'GET /owners/top_products/',
    query,
    response: z.array(TopProduct),
    summary: 'The products that sold most: name, units, image',
    description:
      'Of all time, by units; of as many units the one with more revenue stands first. At most ten (the operator can set it).',
    examples: { response: [['Orange Juice', 212, '/images/orange-juice.webp']] },
  },
  'owner.analytics.top_categories': {
    at: 'GET /owners/hubs/{hub_id}/top-categories',
    params: z.object({ hub_id: Id }),
    response: z.array(z.object({ name: z.string(), revenue_cents: Cents, units_sold: Count })),
    summary: 'The categories by items sold, of all time',
    description: 'A product counts in the category that it is in now. At most a hundred.',
    examples: { response: [{ name: 'Drinks', revenue_cents: 98_120, units_sold: 391 }] },
  },
  'owner.analytics.weekly_sales': {
    at: 'GET /owners/weekly_sales_breakdown/',
    query,
    response: z.array(DaySales),
    summary: 'Revenue of each day of the current week, Monday to Sunday',
    description: counted,
    examples: { response: [['Monday', 10_450]] },
  },
  'owner.analytics.earnings': {
    at: 'GET /owners/earnings-and-profits-ytd/',
    query,
    response: z.object({
      monthly_data: z.array(
        z.object({ month: Month, total_earnings: Cents, total_cost: Cents, total_profit: Cents }),
      ),
      highest_earning: Cents,
      highest_cost: Cents,
      highest_profit: Cents,
    }),
    summary: 'Revenue, cost of goods and profit of each month of the current year to date',
    description: `${counted} Cost is the purchase price at the sale.`,
  },
  'owner.analytics.customer_growth': {
    at: 'GET /owners/customer-growth/',
    query,
    response: z.object({
      customer_growth: z.array(z.object({ month: Month, unique_customers: Count })),
    }),
    summary: 'How many different customers bought in each month of the current year to date',
  },
  'owner.analytics.monthly_comparison': {
    at: 'GET /owners/monthly_sales_comparison/',
    query,
    response: z.object({
      current_year: z.array(Cents).length(12),
      previous_year: z.array(Cents).length(12),
    }),
    summary: 'Revenue of each month, January to December, of this year and the last',
    description: counted,
  },
  'owner.analytics.overview': {
    at: 'GET /owners/get_sales_overview/',
    query,
    response: SalesOverview,
    summary:
      'Sales of the current day, ISO week, month and year to date beside the same stretch of the period before',
    description: `${counted} \`period_start\` and \`period_end\` bound the calendar period; the figures are those so far. \`previous\` begins with the period before and ends at the same time of day, by the hub’s clock: yesterday, on the same day of last week, on the same date of last month, and of last year. A month without that date counts whole. A time that the clock showed twice is the first of them.`,
  },
  'owner.analytics.net_profit': {
    at: 'GET /owners/monthly_net_profit_breakdown/',
    query,
    response: z.object({ gross_revenue: Cents, cost_of_goods: Cents, net_profit: Cents }),
    summary: 'Revenue, cost of goods and profit of the current month to date',
    description: `${counted} Cost is the purchase price at the sale.`,
    examples: { response: { gross_revenue: 41_200, cost_of_goods: 22_050, net_profit: 19_150 } },
  },
  'owner.analytics.product_months': {
    at: 'GET /owners/monthly_sales_breakdown_for_product/',
    query: z.object({ hub_id: Id, product_upc: z.string().min(1).max(50) }),
    response: z.object({
      product_upc: z.string(),
      product_name: z.string(),
      monthly_data: z
        .array(
          z.object({
            month: Month,
            units_sold: Count,
            revenue_cents: Cents,
            cost_cents: Cents,
            profit_cents: Cents,
          }),
        )
        .length(12),
    }),
    errors: ['product_not_found'],
    summary: 'Sales of one product in each of the last twelve months, oldest first',
    description: `${counted} Cost is the purchase price at the sale. A UPC may come without its leading zeros.`,
  },
})
