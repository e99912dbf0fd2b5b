import type { Selectable } from 'kysely'
import type { Day } from '../../platform/calendar/days.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/in-list.ts'
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
 * - An order that was refunded in full is not a sale: it does not count as an order, as a customer, or as revenue. So
 *   the average order refers to the orders that brought the revenue. A partly refunded order counts, and so does an
 *   order with a finally refused refund. A free order counts too.
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
  /** By line id. */
  lines: SaleLine[]
}

export const HOUR_MS = 3_600_000
/** The beginning of the UTC hour of an instant. */
export const hourOf = (at: number): number => at - (at % HOUR_MS)

/** The period of all time. */
export const ALL = 'all'
/** Stands for the whole hub among its products. */
export const WHOLE_HUB = 0

/** `[product id, units, revenue in cents, cost in cents]` */
type SaleLine = readonly [productId: number, units: number, revenue: number, cost: number]

/** A line of a paid order with its frozen values. */
export interface SoldLine {
  id: number
  productId: number
  quantity: number
  refundedQuantity: number
  /** Per unit. */
  purchasePrice: number
  net: number
}

/** A refund of an order without tax, for one line or for no line. */
interface ReturnedMoney {
  lineId: number | null
  amount: number
}

/** The values of lines after refunds. The lines are in the order of their ids. */
export function saleLines(lines: readonly SoldLine[], refunds: readonly ReturnedMoney[]): SaleLine[] {
  const back = (lineId: number | null): number =>
    refunds.reduce((sum, refund) => sum + (refund.lineId === lineId ? refund.amount : 0), 0)
  const left = lines.map(({ id, net }) => net - back(id))
  const shares = spread(
    back(null),
    left.map((amount) => Math.max(0, amount)),
  )
  return lines.map(({ productId, quantity, refundedQuantity, purchasePrice }, index) => {
    const units = quantity - refundedQuantity
    return [productId, units, left[index]! - shares[index]!, units * purchasePrice]
  })
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
export interface SaleBooks {
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
  const kept = payments.filter(({ id, amount }) => !isGivenBack(amount, refunds.get(id) ?? []))
  const paidBy = new Map(kept.map(({ order_id, id }) => [order_id, id]))
  const lines = linesByOrder(soldLines)
  const orders = new Map(soldLines.map((line) => [line.order_id, line]))
  return {
    now: new Map(
      [...orders]
        .filter(([id]) => paidBy.has(id))
        .map(([id, order]) => [
          id,
          {
            orderId: id,
            hubId: order.hub_id,
            ownerId: order.owner_id!,
            userId: order.user_id,
            at: order.queued_at!,
            day: localDay(order.timezone, order.queued_at!),
            lines: saleLines(lines.get(id)!, refunds.get(paidBy.get(id)!) ?? []),
          },
        ]),
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
          lines: JSON.parse(row.lines) as SaleLine[],
        },
      ]),
    ),
  }
}

export function rowOf({ orderId, hubId, ownerId, userId, at, day, lines }: Sale): SaleRow {
  const { units, revenue } = sumOf(lines)
  const book = { order_id: orderId, hub_id: hubId, owner_id: ownerId }
  return { ...book, user_id: userId, sold_at: at, day, units, revenue, lines: JSON.stringify(lines) }
}

/** The sum of a sale's lines. */
export const sumOf = (lines: readonly SaleLine[]): { units: number; revenue: number; cost: number } =>
  lines.reduce(
    (sum, [, units, revenue, cost]) => ({
      units: sum.units + units,
      revenue: sum.revenue + revenue,
      cost: sum.cost + cost,
    }),
    { units: 0, revenue: 0, cost: 0 },
  )

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
      .select([
        'i.order_id',
        'i.id',
        'i.product_id',
        'i.qty',
        'i.refunded_quantity',
        'i.purchase_price',
        'i.net',
      ])
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

/** A refund of a payment, completed or pending. */
interface PaidBack extends ReturnedMoney {
  tax: number
}

const isGivenBack = (paid: number, refunds: readonly PaidBack[]): boolean =>
  paid > 0 && refunds.reduce((sum, { amount, tax }) => sum + amount + tax, 0) >= paid

/** By payment. */
const refundsOf = (rows: readonly PaymentAndBack[]): Map<number, PaidBack[]> =>
  group(
    rows.flatMap(({ id, item_id, back, back_tax: tax }) =>
      back === null || tax === null ? [] : [[id, { lineId: item_id, amount: back - tax, tax }] as const],
    ),
  )

const linesByOrder = (rows: readonly LineOfOrder[]): Map<number, SoldLine[]> =>
  group(
    rows.map((row) => [
      row.order_id,
      {
        id: row.id,
        productId: row.product_id,
        quantity: row.qty,
        refundedQuantity: row.refunded_quantity,
        purchasePrice: row.purchase_price!,
        net: row.net!,
      },
    ]),
  )

function group<T>(rows: readonly (readonly [key: number, value: T])[]): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const [key, value] of rows) {
    const known = groups.get(key)
    if (known) known.push(value)
    else groups.set(key, [value])
  }
  return groups
}
