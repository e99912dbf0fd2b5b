import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { Vitals } from '../model/vitals.ts'
import {
  Cents,
  CreatedAt,
  Currency,
  Cursor,
  HasMore,
  HubFilter,
  HubId,
  HubIdOrNull,
  Limit,
  NextCursor,
  OrderId,
  ProductId,
  ReportDay,
  ReportRange,
  Timestamp,
  Upc,
} from './fields.ts'
import { HubStatus } from './owner-hubs.ts'
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

const RestockRow = z
  .object({
    hub_id: HubId,
    hub_name: z.string().describe('Name of the hub.'),
    cabinet: z.int().describe('Number of the cabinet.'),
    shelf: z.int().describe('Number of the shelf in its cabinet.'),
    row: z.int().describe('Number of the row on its shelf.'),
    product_id: ProductId,
    upc: Upc,
    name: z.string().describe('Name of the product.'),
    capacity: z.int().describe('Units that fit in the row.'),
    quantity: z.int().describe('Units in the row.'),
    refill: z.int().describe('`capacity` minus `quantity`.'),
    sold_per_day: z.number().describe('Sold units of the product at the hub per day, two decimals.'),
    empty_by: ReportDay.nullable().describe(
      'Day on which the stock of the product at the hub ends at that rate; null if none was sold.',
    ),
    blocked: z.boolean().describe('True if nothing is sold from the row.'),
  })
  .meta({ id: 'RestockRow', description: 'A row that is not full, or is blocked.' })
export type RestockRow = z.infer<typeof RestockRow>
export const restockColumns = columnsOf(RestockRow)

const Fleet = z
  .object({
    hub_id: HubId,
    name: z.string().describe('Name of the hub.'),
    hub_status: HubStatus,
    online: z.boolean().describe('True if the hub has reported within the last 90 seconds.'),
    last_heartbeat: Timestamp.nullable().describe(
      'Time of the last heartbeat (UTC); null if the hub was never connected.',
    ),
    version: z.string().nullable().describe('Last known version of the hub’s software; null if unknown.'),
    alarms: z
      .object({
        critical: Count.describe('Number of open critical alarms.'),
        warning: Count.describe('Number of open warnings.'),
        info: Count.describe('Number of open notices.'),
      })
      .describe('Open alarms by severity.'),
    sales_today: z
      .object({
        total_orders: figures.total_orders,
        units_sold: figures.units_sold,
        gross_revenue: figures.gross_revenue,
      })
      .nullable()
      .describe('Sales of the hub’s current day; null without the scope `analytics:read`.'),
    free_bins: Count.describe('Number of bins that a further order can use; 0 while the hub is offline.'),
    warmest_fridge: z
      .object({
        fridge: z.int().describe('Number of the fridge.'),
        temperature: z.number().describe('Temperature in degrees Celsius.'),
      })
      .nullable()
      .describe('The warmest fridge; null if no temperature is known.'),
    vitals: z
      .object({
        reported_at: Timestamp.describe('Time of the report (UTC).'),
        ...Vitals.shape,
        last_crash: z
          .object({
            at: Timestamp.describe('Time of the start (UTC).'),
            error: z
              .string()
              .nullable()
              .describe('Error that ended the former run; null after a kill or a power failure.'),
          })
          .nullable()
          .describe('Latest start after a run that did not end normally; null if there was none.'),
      })
      .meta({ id: 'HubVitals', description: 'Figures of a hub’s board and service.' })
      .optional()
      .describe('Latest figures of the board and the service; absent if the hub has reported none.'),
  })
  .meta({ id: 'FleetHub', description: 'A hub in the list of the fleet.' })
export type FleetHub = z.infer<typeof Fleet>

const AuditRecord = z
  .object({
    id: z.string().describe('Id of the record.'),
    at: Timestamp.describe('Time of the act (UTC).'),
    actor: z.string().describe('Who acted: `key:PREFIX`, `identity:SUB`, `person:NAME`, or a program.'),
    action: z.string().describe('What was done: `controls.open_bin`, `orders.refund`.'),
    hub_id: HubIdOrNull,
    object: z.string().describe('Target of the act: `bin-2`, `order-17`.'),
    result: z.string().describe('What came of it: `executed`, `refused`, `failed`, `unknown`.'),
    detail: z.record(z.string(), z.unknown()).describe('Facts of the act.'),
  })
  .meta({ id: 'AuditRecord', description: 'An act of a person or program.' })
export type AuditRecord = z.infer<typeof AuditRecord>
export const auditColumns = columnsOf(AuditRecord)

const listOf = <T extends z.ZodType>(row: T) =>
  z.object({
    data: z.array(row).describe('Rows of the page.'),
    next_cursor: NextCursor,
    has_more: HasMore,
  })
const paging = { limit: Limit, cursor: Cursor }

const report = { interface: 'owner', rate: 'standard', tag: 'Reports' } as const
/** Routes whose `hub_id` the caller must reach. */
const ofHub = { hub: 'hub_id' } as const

export const ownerReportRoutes = defineRoutes(report, {
  'owner.sales.report': {
    at: 'GET /owners/sales',
    ...ofHub,
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
    ...ofHub,
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
  'owner.restock.list': {
    at: 'GET /owners/restock',
    ...ofHub,
    headers: ['X-Incomplete'],
    auth: { kind: 'api', scope: 'inventory:read' },
    query: z.object({
      hub_id: HubFilter,
      days: z
        .int()
        .min(1)
        .max(90)
        .default(14)
        .describe('Number of full days for the average `sold_per_day`.'),
      ...paging,
    }),
    response: listOf(RestockRow),
    alsoProduces: 'text/csv',
    errors: ['invalid_cursor'],
    summary: 'List the rows to refill, by hub and place',
    description:
      'The list has each row with a product that is not full or is blocked. `empty_by` is today if the stock is 0. `Accept: text/csv` returns all rows.',
  },
  'owner.fleet.list': {
    at: 'GET /owners/fleet',
    ...ofHub,
    headers: ['X-Incomplete'],
    auth: { kind: 'api', scope: 'hubs:read', further: 'analytics:read' },
    query: z.object({ hub_id: HubFilter, ...paging }),
    response: listOf(Fleet),
    errors: ['invalid_cursor'],
    summary: 'List hubs with their state, alarms and sales of today',
    description: 'A row for each hub that the credential reaches, in the order of their numbers.',
  },
  'owner.audit.read': {
    at: 'GET /owners/audit',
    auth: { kind: 'api', scope: 'hubs:read', further: 'diag:read', either: true },
    query: z.object({
      hub_id: HubFilter,
      ...ReportRange,
      action: z
        .string()
        .max(100)
        .optional()
        .describe('A name, or the beginning of names that ends in a dot. If it is left out: all actions.'),
      actor: z.string().max(300).optional().describe('Only this actor. If it is left out: all actors.'),
      object: z.string().max(300).optional().describe('Only this target. If it is left out: all targets.'),
      ...paging,
    }),
    response: listOf(AuditRecord),
    alsoProduces: 'text/csv',
    errors: ['invalid_cursor', 'hub_access_denied', 'hub_not_found'],
    summary: 'List acts on hardware, money, prices and credentials, newest first',
    description:
      'The scope `diag:read` reads all records. With `hubs:read` a key reads the records of its hubs in its owner’s time, and of its owner’s keys; a key limited to hubs reads those of its hubs and of itself. Records without a hub have days of UTC. `Accept: text/csv` returns all rows.',
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
