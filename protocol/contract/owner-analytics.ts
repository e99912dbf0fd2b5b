import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { Cents, Timestamp, HubId, Upc } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `YYYY-MM` */
const Month = z.string().regex(/^\d{4}-\d{2}$/)
const Count = z.int()

/** Name, units, image. */
const TopProduct = z
  .tuple([z.string(), Count, z.string()])
  .meta({ id: 'TopProduct', description: 'Name, sold units and image of a product.' })
/** Day of the week, revenue. */
const DaySales = z
  .tuple([z.string(), Cents])
  .meta({ id: 'DaySales', description: 'Name of a weekday, and its revenue in cents.' })

const Figures = z
  .object({
    gross_revenue: Cents.describe('Revenue without tax, after discounts and refunds, in cents.'),
    total_orders: Count.describe('Number of paid orders that were not refunded in whole.'),
    units_sold: Count.describe('Sold units, refunded units excluded.'),
    average_order_value: Cents.describe(
      '`gross_revenue` per order of `total_orders`, in cents, rounded half up; 0 without orders.',
    ),
  })
  .meta({ id: 'SalesFigures', description: 'Sales of a stretch of time.' })

const OverviewPeriod = Figures.extend({
  period_start: Timestamp.describe('Start of the period (UTC).'),
  period_end: Timestamp.describe('Start of the next period (UTC).'),
  previous: Figures.describe('Figures of the same stretch of the period before.'),
  change_pct: z
    .number()
    .nullable()
    .describe('Change of the revenue against `previous`, in percent; null if the revenue was 0.'),
}).meta({ id: 'SalesPeriod', description: 'Sales of a period to date.' })

export const SalesOverview = z
  .object({
    hub_id: HubId,
    timezone: z.string().describe('IANA name of the hub’s time zone; the periods follow it.'),
    generated_at: Timestamp.describe('Time of this answer (UTC).'),
    daily: OverviewPeriod.describe('Figures of the current day.'),
    weekly: OverviewPeriod.describe('Figures of the current ISO week.'),
    monthly: OverviewPeriod.describe('Figures of the current month.'),
    yearly: OverviewPeriod.describe('Figures of the current year.'),
  })
  .meta({ id: 'SalesOverview', description: 'Sales of the current periods beside the periods before.' })
export type SalesOverview = z.infer<typeof SalesOverview>

const Timeframe = namedEnum('Timeframe', 'Period to date, in the hub’s time zone.', {
  daily: 'the current day.',
  weekly: 'the current ISO week.',
  monthly: 'the current month.',
})

const shared = {
  interface: 'owner',
  headers: ['X-Incomplete'],
  auth: { kind: 'api', scope: 'analytics:read' },
  rate: 'standard',
  hub: 'hub_id',
  formerOwners: true,
  tag: 'Analytics',
} as const
const query = z.object({ hub_id: HubId })

const counted =
  'Paid orders count on the day of their payment in the hub’s time zone, unless they were refunded in whole. Revenue is their discounted line totals without tax, less refunds; units and cost leave refunded units out. A refund counts against the day of its sale.'

/** O §4.4. */
export const ownerAnalyticsRoutes = defineRoutes(shared, {
  'owner.analytics.gross_revenue': {
    at: 'GET /owners/gross_revenue/',
    rate: 'low',
    query: z.object({
      hub_id: HubId,
      timeframe: Timeframe.optional().describe('Period to date. If it is left out: all time.'),
    }),
    response: z.object({
      gross_revenue: Cents.describe('Revenue without tax, after discounts and refunds, in cents.'),
    }),
    summary: 'Read the revenue of the current day, ISO week or month to date, or of all time',
    description: counted,
    examples: { response: { gross_revenue: 128_450 } },
  },
  'owner.analytics.total_orders': {
    at: 'GET /owners/total_orders/',
    query,
    response: z.object({
      total_orders: Count.describe('Number of paid orders that were not refunded in whole.'),
    }),
    summary: 'Count the paid orders of a hub',
    description:
      'Orders that were refunded in whole do not count; orders that were refunded in part count. `gross_revenue` is of the same orders. An order whose refund failed counts again.',
    examples: { response: { total_orders: 412 } },
  },
  'owner.analytics.total_products': {
    at: 'GET /owners/total_products/',
    query,
    response: z.object({ total_products: Count.describe('Number of different active products.') }),
    summary: 'Count the different products that a hub sells',
    description: 'A product that is not active any more does not count.',
    examples: { response: { total_products: 64 } },
  },
  'owner.analytics.total_customers': {
    at: 'GET /owners/total_customers/',
    query,
    response: z.object({ total_customers: Count.describe('Number of different customers.') }),
    summary: 'Count the different customers of a hub',
    description: 'A customer counts with one paid order that was not refunded in whole.',
    examples: { response: { total_customers: 117 } },
  },
  'owner.analytics.top_products': {
    at: 'GET /owners/top_products/',
    query,
    response: z.array(TopProduct),
    summary: 'List the best-selling products: name, units, image',
    description: 'Of all time, sorted by units, then by revenue. At most ten (the operator can change it).',
    examples: { response: [['Orange Juice', 212, '/images/orange-juice.webp']] },
  },
  'owner.analytics.top_categories': {
    at: 'GET /owners/hubs/{hub_id}/top-categories',
    params: z.object({ hub_id: HubId }),
    response: z.array(
      z.object({
        name: z.string().describe('Name of the category.'),
        revenue_cents: Cents.describe('Revenue in cents, without tax, after discounts and refunds.'),
        units_sold: Count.describe('Sold units, refunded units excluded.'),
      }),
    ),
    summary: 'List the categories by sold units, of all time',
    description: 'A product counts in its present category. At most a hundred categories.',
    examples: { response: [{ name: 'Drinks', revenue_cents: 98_120, units_sold: 391 }] },
  },
  'owner.analytics.weekly_sales': {
    at: 'GET /owners/weekly_sales_breakdown/',
    query,
    response: z.array(DaySales),
    summary: 'Read the revenue of each day of the current week, Monday to Sunday',
    description: counted,
    examples: { response: [['Monday', 10_450]] },
  },
  'owner.analytics.earnings': {
    at: 'GET /owners/earnings-and-profits-ytd/',
    query,
    response: z.object({
      monthly_data: z
        .array(
          z.object({
            month: Month.describe('Month (`YYYY-MM`).'),
            total_earnings: Cents.describe('Revenue in cents, without tax, after discounts and refunds.'),
            total_cost: Cents.describe('Cost of the sold goods, in cents.'),
            total_profit: Cents.describe('Revenue minus cost, in cents.'),
          }),
        )
        .describe('Months of the current year to date, oldest first.'),
      highest_earning: Cents.describe('Highest monthly revenue, in cents.'),
      highest_cost: Cents.describe('Highest monthly cost, in cents.'),
      highest_profit: Cents.describe('Highest monthly profit, in cents.'),
    }),
    summary: 'Read revenue, cost and profit of each month of the current year to date',
    description: `${counted} Cost is the purchase price at the sale.`,
  },
  'owner.analytics.customer_growth': {
    at: 'GET /owners/customer-growth/',
    query,
    response: z.object({
      customer_growth: z
        .array(
          z.object({
            month: Month.describe('Month (`YYYY-MM`).'),
            unique_customers: Count.describe('Number of different customers of the month.'),
          }),
        )
        .describe('Months of the current year to date, oldest first.'),
    }),
    summary: 'Count the different customers of each month of the current year to date',
    description: 'A customer counts in each month with a paid order that was not refunded in whole.',
  },
  'owner.analytics.monthly_comparison': {
    at: 'GET /owners/monthly_sales_comparison/',
    query,
    response: z.object({
      current_year: z
        .array(Cents)
        .length(12)
        .describe('Revenue of each month of this year in cents, January first; 0 for months to come.'),
      previous_year: z
        .array(Cents)
        .length(12)
        .describe('Revenue of each month of last year in cents, January first.'),
    }),
    summary: 'Read the revenue of each month of this year and of last year',
    description: counted,
  },
  'owner.analytics.overview': {
    at: 'GET /owners/get_sales_overview/',
    query,
    response: SalesOverview,
    summary:
      'Read sales of the current day, ISO week, month and year beside the same stretch of the period before',
    description: `${counted} \`period_start\` and \`period_end\` bound the calendar period; the figures are those so far. \`previous\` begins with the period before and ends at the same time of day, by the hub’s clock: yesterday, on the same day of last week, on the same date of last month, and of last year. A month without that date counts whole. A time that the clock showed twice is the first of them.`,
  },
  'owner.analytics.net_profit': {
    at: 'GET /owners/monthly_net_profit_breakdown/',
    query,
    response: z.object({
      gross_revenue: Cents.describe('Revenue without tax, after discounts and refunds, in cents.'),
      cost_of_goods: Cents.describe('Cost of the sold goods, in cents.'),
      net_profit: Cents.describe('Revenue minus cost, in cents.'),
    }),
    summary: 'Read revenue, cost of goods and profit of the current month to date',
    description: `${counted} Cost is the purchase price at the sale.`,
    examples: { response: { gross_revenue: 41_200, cost_of_goods: 22_050, net_profit: 19_150 } },
  },
  'owner.analytics.product_months': {
    at: 'GET /owners/monthly_sales_breakdown_for_product/',
    query: z.object({
      hub_id: HubId,
      product_upc: z.string().min(1).max(50).describe('UPC of the product. Leading zeros may be missing.'),
    }),
    response: z.object({
      product_upc: Upc,
      product_name: z.string().describe('Name of the product.'),
      monthly_data: z
        .array(
          z.object({
            month: Month.describe('Month (`YYYY-MM`).'),
            units_sold: Count.describe('Sold units, refunded units excluded.'),
            revenue_cents: Cents.describe('Revenue in cents, without tax, after discounts and refunds.'),
            cost_cents: Cents.describe('Cost of the sold units, in cents.'),
            profit_cents: Cents.describe('Revenue minus cost, in cents.'),
          }),
        )
        .length(12)
        .describe('The last twelve months, oldest first.'),
    }),
    errors: ['product_not_found'],
    summary: 'Read the sales of one product in each of the last twelve months',
    description: `${counted} Cost is the purchase price at the sale. A UPC may come without its leading zeros.`,
  },
})
