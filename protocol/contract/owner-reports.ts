import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import {
  Cents,
  CreatedAt,
  Currency,
  Cursor,
  HasMore,
  HubFilter,
  HubId,
  Limit,
  NextCursor,
  OrderId,
  ReportDay,
  ReportRange,
  Timestamp,
} from './fields.ts'
import { defineRoutes } from './route.ts'

/** Reports and exports for owners (contract, section 16). */

const Count = z.int()

const figures = {
  total_orders: Count.describe('Number of paid orders that were not refunded in whole.'),
  units_sold: Count.describe('Sold units, refunded units excluded.'),
  gross_revenue: Cents.describe('Revenue without tax, after discounts and refunds, in cents.'),
  discount_total: Cents.describe(
    'Original less discounted price of the sold units, by markdowns and deals together, in cents.',
  ),
  tax_total: Cents.describe('Tax, refunded tax excluded, in cents.'),
  refunded_total: Cents.describe('Refunded money without tax, in cents.'),
  cost_of_goods: Cents.describe('Purchase price at the sale of the sold units, in cents.'),
  net_profit: Cents.describe('`gross_revenue` minus `cost_of_goods`, in cents.'),
}
const Figures = z.object(figures).meta({ id: 'SalesReportFigures', description: 'Sales as figures.' })
export type Figures = z.infer<typeof Figures>

const SalesRow = z
  .object({
    key: z
      .string()
      .describe(
        'What the row is about: `YYYY-MM-DD`, `YYYY-Www`, `YYYY-MM`, UPC, name of a category (empty without one), hour of the day `00` to `23`, or number of the hub.',
      ),
    name: z.string().nullable().describe('Name of the product, category or hub; null for times.'),
    ...figures,
  })
  .meta({
    id: 'SalesReportRow',
    description: 'Sales of one day, week, month, hour, product, category or hub.',
  })
export type SalesRow = z.infer<typeof SalesRow>

export const salesColumns = ['key', 'name', ...(Object.keys(figures) as (keyof Figures)[])] as const

const GroupBy = namedEnum('SalesGrouping', 'Rows of the report.', {
  day: 'a row for each day.',
  week: 'a row for each ISO week.',
  month: 'a row for each month.',
  product: 'a row for each sold product.',
  category: 'a row for each sold category.',
  hour: 'a row for each hour of the day.',
  hub: 'a row for each hub.',
})
export type GroupBy = z.infer<typeof GroupBy>

const MovementType = namedEnum('MoneyMovementType', 'Kind of a movement of money.', {
  payment: 'the customer paid.',
  refund: 'money was refunded.',
  dispute: 'the bank of the customer took the money back, or returned it.',
})

const MovementStatus = namedEnum('MoneyMovementStatus', 'State of a movement of money.', {
  completed: 'the payment is complete.',
  succeeded: 'the refund is complete.',
  lost: 'the bank took the money back.',
  won: 'the bank returned the money.',
})
const PaymentWay = namedEnum('PaymentWay', 'Way of a payment.', {
  card: 'by card or mobile wallet.',
  wallet: 'from the customer’s wallet at the service.',
  external: 'to an integrator.',
})

export const OwnerPayment = z
  .object({
    id: z.string().describe('Id of the movement: `pay_…`, `re_…` or `dp_…`.'),
    type: MovementType,
    order_id: OrderId,
    hub_id: HubId,
    created_at: CreatedAt,
    completed_at: Timestamp.describe('Time at which the money moved (UTC).'),
    status: MovementStatus,
    processor: PaymentWay,
    amount: Cents.describe('Amount with tax in cents; negative if the owner lost it.'),
    tax: Cents.describe('Tax in `amount`, with the same sign, in cents.'),
    currency: Currency,
    reference: z.string().nullable().describe('The card processor’s id; null without one.'),
  })
  .meta({ id: 'OwnerPayment', description: 'A movement of money of an order.' })
export type OwnerPayment = z.infer<typeof OwnerPayment>

const columnsOf = <T extends z.ZodObject>(schema: T) =>
  Object.keys(schema.shape) as (keyof z.infer<T> & string)[]

export const paymentColumns = columnsOf(OwnerPayment)

const listOf = <T extends z.ZodType>(row: T) =>
  z.object({
    data: z.array(row).describe('Rows of the page.'),
    next_cursor: NextCursor,
    has_more: HasMore,
  })
const paging = { limit: Limit, cursor: Cursor }

const report = { interface: 'owner', rate: 'standard', hub: 'hub_id', tag: 'Reports' } as const

export const ownerReportRoutes = defineRoutes(report, {
  'owner.sales.report': {
    at: 'GET /owners/sales',
    auth: { kind: 'api', scope: 'analytics:read' },
    formerOwners: true,
    headers: ['X-Incomplete'],
    query: z.object({
      hub_id: HubFilter,
      from: ReportDay.optional().describe('First day. If it is left out: six days before `to`.'),
      to: ReportDay.optional().describe(
        'Last day, at most 365 days after `from`. If it is left out: six days after `from`, or today without `from`.',
      ),
      group_by: GroupBy.default('day'),
    }),
    response: z.object({
      from: ReportDay.describe('First day.'),
      to: ReportDay.describe('Last day.'),
      group_by: GroupBy,
      currency: Currency,
      generated_at: Timestamp.describe('Time of this answer (UTC).'),
      totals: Figures.describe('Sales of the whole range.'),
      data: z
        .array(SalesRow)
        .describe('Times in order, all of them; other rows by `gross_revenue`, highest first.'),
    }),
    alsoProduces: 'text/csv',
    summary: 'Read sales of a range of days by day, week, month, hour, product, category or hub',
    description:
      'Days and hours are those of each hub’s time zone. An order counts on the day of its payment, and so do its later refunds. Names, UPCs and categories are those of the sale. In rows of products and categories, `total_orders` counts the orders that contain them. The default is the last 7 days, today included. `Accept: text/csv` returns the rows as a table.',
    examples: {
      response: {
        from: '2026-11-20',
        to: '2026-11-20',
        group_by: 'day',
        currency: 'USD',
        generated_at: '2026-11-21T07:00:00.000Z',
        totals: exampleOf(),
        data: [{ key: '2026-11-20', name: null, ...exampleOf() }],
      },
    },
  },
  'owner.payments.list': {
    at: 'GET /owners/payments',
    auth: { kind: 'api', scope: 'orders:read' },
    formerOwners: true,
    query: z.object({
      hub_id: HubFilter,
      order_id: OrderId.optional().describe('Only this order. If it is left out: all orders.'),
      ...ReportRange,
      ...paging,
    }),
    response: listOf(OwnerPayment),
    alsoProduces: 'text/csv',
    errors: ['invalid_cursor'],
    summary: 'List payments, refunds and disputes, newest first',
    description:
      'The list has every movement of money of the owner’s orders: completed payments, succeeded refunds and disputes. A dispute that is won later adds a positive row. `from` and `to` bound `created_at`. Deposits to wallets are absent. `Accept: text/csv` returns all rows.',
  },
})

function exampleOf(): Figures {
  return {
    total_orders: 12,
    units_sold: 31,
    gross_revenue: 6_140,
    discount_total: 420,
    tax_total: 507,
    refunded_total: 250,
    cost_of_goods: 3_480,
    net_profit: 2_660,
  }
}
