import type { Selectable } from 'kysely'
import { timestamp, type Day } from '../../platform/calendar/days.ts'
import { localDay, localHour } from '../../platform/calendar/zone.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { unitShare } from '../catalogue/pricing.ts'

/**
 * The definition of sales in analytics. Only *paid orders* count: their payment was completed in time and has not been
 * refunded in full. Late money never counts. The processor (card, wallet, integrator) makes no difference.
 *
 * - A sale belongs to the day of its payment (`orders.queued_at`) in the hub's time zone, and so do later changes: a
 *   refund counts against the day of its sale. The figures of a past day thus describe what became of its sales.
 * - Revenue is the lines' frozen amount after markdown and deals, without tax, minus refunds without their tax. A
 *   refund counts when it is recorded, and no longer when the processor has refused it.
 * - Units are paid units minus refunded units; cost is the purchase price at the sale times these units.
 * - An order that was refunded in full does not count as an order, as a customer, or as revenue. Only its refunded money
 *   counts. So the average order refers to the orders that brought the revenue. A partly refunded order counts, and so
 *   does an order with a finally refused refund. A free order counts too.
 * - The discount is the original less the discounted price of the units that count, by markdown and deals together. The
 *   tax is the tax of the order less the tax of its refunds.
 * - A refund without a line is spread over the order's lines in proportion to their remaining amounts, to the cent, so
 *   that products add up to their hub.
 */
export interface Sale {
  orderId: number
  hubId: number
  /** The hub's owner at the sale. */
  ownerId: number
  userId: number
  /** When the order was paid. */
  at: number
  /** The day in the hub's time zone. */
  day: Day
  /** The hour of that day by the hub's clock: `00` to `23`. */
  hour: string
  /** 0 if it was refunded in full, else 1. */
  orders: number
  /** By line id. */
  lines: SaleLine[]
  /** The products of the lines at the sale. */
  sold: readonly SoldProduct[]
}

/** A product as it was sold: its frozen UPC, name and category. */
interface SoldProduct {
  productId: number
  upc: string
  name: string
  category: string
}

export const HOUR_MS = 3_600_000
/** The beginning of the UTC hour of an instant. */
export const hourOf = (at: number): number => at - (at % HOUR_MS)

/** The UTC hour of an instant: its day, and `00` to `23`. UTC has no clock changes. */
export function utcHour(at: number): { day: Day; key: string } {
  const text = timestamp(at)
  return { day: text.slice(0, 10), key: text.slice(11, 13) }
}

/** The period of all time. */
export const ALL = 'all'
/** Stands for the whole hub among its products. */
export const WHOLE_HUB = 0

/** A product id, then figures of a line: units, and cents. */
type SaleLine = readonly [
  productId: number,
  units: number,
  revenue: number,
  cost: number,
  discount: number,
  tax: number,
  refunded: number,
]

/** A line of a paid order with its frozen values. */
export interface SoldLine {
  id: number
  productId: number
  quantity: number
  refundedQuantity: number
  /** Per unit. */
  originalPrice: number
  purchasePrice: number
  net: number
  tax: number
}

/** A refund of an order, for one line or for no line. `amount` is without its tax. */
interface ReturnedMoney {
  lineId: number | null
  amount: number
  tax: number
}

/** The values of lines after refunds. The lines are in the order of their ids. */
export function saleLines(
  lines: readonly SoldLine[],
  refunds: readonly ReturnedMoney[],
  isWhole = false,
): SaleLine[] {
  if (isWhole) return lines.map(({ productId, net }) => [productId, 0, 0, 0, 0, 0, net])
  const revenues = remainders(lines, refunds, 'net', 'amount')
  const taxes = remainders(lines, refunds, 'tax', 'tax')
  return lines.map(({ productId, quantity, refundedQuantity, ...line }, index) => {
    const units = quantity - refundedQuantity
    const revenue = revenues[index]!
    const paid = unitShare(line.net, quantity, refundedQuantity, units)
    return [
      productId,
      units,
      revenue,
      units * line.purchasePrice,
      units * line.originalPrice - paid,
      taxes[index]!,
      line.net - revenue,
    ]
  })
}

/** The remainder of each line's amount. A refund without a line is spread over the remainders of all lines. */
function remainders(
  lines: readonly SoldLine[],
  refunds: readonly ReturnedMoney[],
  of: 'net' | 'tax',
  returned: 'amount' | 'tax',
): number[] {
  const back = (lineId: number | null): number =>
    refunds.reduce((sum, refund) => sum + (refund.lineId === lineId ? refund[returned] : 0), 0)
  const left = lines.map((line) => line[of] - back(line.id))
  const shares = spread(
    back(null),
    left.map((amount) => Math.max(0, amount)),
  )
  return left.map((amount, index) => amount - shares[index]!)
}

/** Splits an amount in proportion to weights, exactly; if all weights are 0 the last one gets it. */
function spread(amount: number, weights: readonly number[]): number[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  if (whole === 0) return weights.map((_, index) => (index === weights.length - 1 ? amount : 0))
  let before = 0
  return weights.map((weight) => {
    const share = unitShare(amount, whole, before, weight)
    before += weight
    return share
  })
}

type SaleRow = Selectable<Tables['sales']>

/** Orders with their present values and their counted values, by id; orders that are not sales are absent. */
export interface SalesOfOrders {
  now: ReadonlyMap<number, Sale>
  held: ReadonlyMap<number, Sale>
}

/** The payments and counted values of some orders. */
interface SaleBooks {
  payments: readonly PaymentAndBack[]
  held: readonly SaleRow[]
}

/** Several simple queries instead of a join, because a planner without statistics may execute the join badly. */
export async function readSaleBooks(q: Queries, orderIds: readonly number[]): Promise<SaleBooks> {
  const of = { orderIds }
  const [payments, held] = await Promise.all([completedPayments(q, of), heldSales(q, of)])
  return { payments, held }
}

export function salesOf(soldLines: readonly LineOfOrder[], books: SaleBooks): SalesOfOrders {
  const payments = books.payments.filter(({ id }, index) => books.payments[index - 1]?.id !== id)
  const refunds = refundsOf(books.payments)
  const paidBy = new Map(payments.map((payment) => [payment.order_id, payment]))
  const lines = group(soldLines.map((line) => [line.order_id, line]))
  const soldIn = (orderId: number): SoldProduct[] => lines.get(orderId)!.map(soldProduct)
  return {
    now: new Map(
      [...lines].flatMap(([orderId, own]) => {
        const payment = paidBy.get(orderId)
        if (!payment) return []
        const [order] = own as [LineOfOrder]
        const returned = refunds.get(payment.id) ?? []
        const isWhole = isFullyRefunded(payment.amount, returned)
        const sale: Sale = {
          orderId,
          hubId: order.hub_id,
          ownerId: order.owner_id!,
          userId: order.user_id,
          at: order.queued_at!,
          day: localDay(order.timezone, order.queued_at!),
          hour: localHour(order.timezone, order.queued_at!),
          orders: isWhole ? 0 : 1,
          lines: saleLines(own.map(soldLine), returned, isWhole),
          sold: soldIn(orderId),
        }
        return [[orderId, sale]]
      }),
    ),
    held: new Map(
      books.held.map((row) => [
        row.order_id,
        {
          orderId: row.order_id,
          hubId: row.hub_id,
          ownerId: row.owner_id,
          userId: row.user_id,
          at: row.sold_at,
          day: row.day,
          hour: localHour(lines.get(row.order_id)![0]!.timezone, row.sold_at),
          orders: row.orders,
          lines: JSON.parse(row.lines) as SaleLine[],
          sold: soldIn(row.order_id),
        },
      ]),
    ),
  }
}

export function rowOf({ orderId, hubId, ownerId, userId, at, day, orders, lines }: Sale): SaleRow {
  const { units, revenue } = sumOf(lines)
  const book = { order_id: orderId, hub_id: hubId, owner_id: ownerId }
  return { ...book, user_id: userId, sold_at: at, day, orders, units, revenue, lines: JSON.stringify(lines) }
}

/** Figures of lines. Cents, except `units`. */
export type SaleFigures = Record<(typeof saleFigures)[number], number>
export const saleFigures = ['units', 'revenue', 'cost', 'discount', 'tax', 'refunded'] as const

export const figuresOf = ([, ...values]: SaleLine): SaleFigures =>
  Object.fromEntries(saleFigures.map((name, index) => [name, values[index]!])) as SaleFigures

/** The sum of a sale's lines. */
export function sumOf(lines: readonly SaleLine[]): SaleFigures {
  const sum = { units: 0, revenue: 0, cost: 0, discount: 0, tax: 0, refunded: 0 }
  for (const line of lines) {
    const figures = figuresOf(line)
    for (const name of saleFigures) sum[name] += figures[name]
  }
  return sum
}

interface OfOrders {
  orderIds: readonly number[]
}

/**
 * The payments that were completed in time, at most one for each order, with their refunds, also pending ones: one row
 * for each refund, or one row without.
 */
const completedPayments = statement((q, { orderIds }: OfOrders) =>
  q
    .selectFrom('payments as p')
    .leftJoin('refunds as r', (join) =>
      join.onRef('r.payment_id', '=', 'p.id').on('r.status', '<>', 'failed'),
    )
    .select(['p.order_id', 'p.id', 'p.amount', 'r.item_id', 'r.amount as back', 'r.tax as back_tax'])
    .where('p.order_id', 'in', numbersIn(q, orderIds))
    .where('p.status', '=', 'completed')
    .where('p.is_late', '=', 0)
    .orderBy('p.id'),
)
type PaymentAndBack = Awaited<ReturnType<typeof completedPayments>>[number]

/**
 * The lines of orders with their hub's calendar, which is locked. The order's lock protects the other values. Empty before a
 * hub's first sale.
 */
export const lockLines = statement((q, { orderIds }: OfOrders, locks) =>
  locks.forUpdate(
    q
      .selectFrom('order_items as i')
      .innerJoin('orders as o', 'o.id', 'i.order_id')
      .innerJoin('sales_calendars as c', 'c.hub_id', 'o.hub_id')
      .select(['i.order_id', 'i.id', 'i.product_id', 'i.qty', 'i.refunded_quantity', 'i.purchase_price'])
      .select(['i.net', 'i.tax', 'i.unit_price_original', 'i.upc', 'i.name', 'i.category'])
      .select(['o.hub_id', 'o.owner_id', 'o.user_id', 'o.queued_at', 'c.timezone'])
      .where('i.order_id', 'in', numbersIn(q, orderIds))
      .orderBy('i.id'),
    'c',
  ),
)

type LineOfOrder = Awaited<ReturnType<typeof lockLines>>[number]

const heldSales = statement((q, { orderIds }: OfOrders) =>
  q.selectFrom('sales').select(allOf('sales')).where('order_id', 'in', numbersIn(q, orderIds)),
)

const isFullyRefunded = (paid: number, refunds: readonly ReturnedMoney[]): boolean =>
  paid > 0 && refunds.reduce((sum, { amount, tax }) => sum + amount + tax, 0) >= paid

/** Refunds, completed or pending, by payment. */
const refundsOf = (rows: readonly PaymentAndBack[]): Map<number, ReturnedMoney[]> =>
  group(
    rows.flatMap(({ id, item_id, back, back_tax: tax }) =>
      back === null || tax === null ? [] : [[id, { lineId: item_id, amount: back - tax, tax }] as const],
    ),
  )

const soldLine = (row: LineOfOrder): SoldLine => ({
  id: row.id,
  productId: row.product_id,
  quantity: row.qty,
  refundedQuantity: row.refunded_quantity,
  originalPrice: row.unit_price_original!,
  purchasePrice: row.purchase_price!,
  net: row.net!,
  tax: row.tax!,
})

const soldProduct = ({ product_id: productId, upc, name, category }: LineOfOrder): SoldProduct => ({
  productId,
  upc: upc!,
  name: name!,
  category: category ?? '',
})

function group<T>(rows: readonly (readonly [key: number, value: T])[]): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const [key, value] of rows) {
    const known = groups.get(key)
    if (known) known.push(value)
    else groups.set(key, [value])
  }
  return groups
}
