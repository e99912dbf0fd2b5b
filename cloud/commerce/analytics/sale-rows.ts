import type { Selectable } from 'kysely'
import { localDay } from '../../platform/calendar/zone.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { saleLines, type ReturnedMoney, type Sale, type SaleLine, type SoldLine } from './sale.ts'

type SaleRow = Selectable<Tables['sales']>

/** Some orders as the books have them now, and as the summaries hold them; each by its id, where it is a sale at all. */
export interface SalesOfOrders {
  now: ReadonlyMap<number, Sale>
  held: ReadonlyMap<number, Sale>
}

/** One simple query after another: joined, they would be at the mercy of a planner that has no statistics yet. */
export async function readSales(q: Queries, orderIds: readonly number[]): Promise<SalesOfOrders> {
  const orders = await q
    .selectFrom('orders')
    .innerJoin('hubs', 'hubs.id', 'orders.hub_id')
    .select(['orders.id', 'orders.hub_id', 'orders.user_id', 'orders.queued_at', 'hubs.timezone'])
    .where('orders.id', 'in', orderIds)
    .execute()
  const payments = await readPayments(q, orderIds)
  const refunds = await readRefunds(q, [...payments.values()])
  const lines = await readLines(q, [...payments.keys()])
  const held = await q.selectFrom('sales').selectAll().where('order_id', 'in', orderIds).execute()
  const hubs = new Map(orders.map(({ id, hub_id }) => [id, hub_id]))
  return {
    now: new Map(
      orders
        .filter(({ id }) => payments.has(id))
        .map((order) => [
          order.id,
          {
            orderId: order.id,
            hubId: order.hub_id,
            userId: order.user_id,
            day: localDay(order.timezone, order.queued_at!),
            lines: saleLines(lines.get(order.id) ?? [], refunds.get(payments.get(order.id)!) ?? []),
          },
        ]),
    ),
    held: new Map(
      held.map((row) => [
        row.order_id,
        {
          orderId: row.order_id,
          hubId: hubs.get(row.order_id)!,
          userId: row.user_id,
          day: row.day,
          lines: JSON.parse(row.lines) as SaleLine[],
        },
      ]),
    ),
  }
}

export const rowOf = ({ orderId, userId, day, lines }: Sale): SaleRow => ({
  order_id: orderId,
  user_id: userId,
  day,
  lines: JSON.stringify(lines),
})

/** The payments that were completed in time, by order. */
async function readPayments(q: Queries, orderIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await q
    .selectFrom('payments')
    .select(['order_id', 'id'])
    .where('order_id', 'in', orderIds)
    .where('status', '=', 'completed')
    .where('is_late', '=', 0)
    .execute()
  return new Map(rows.map((row) => [row.order_id, row.id]))
}

/** What went back or is to go back, by payment. */
async function readRefunds(q: Queries, paymentIds: readonly number[]): Promise<Map<number, ReturnedMoney[]>> {
  if (paymentIds.length === 0) return new Map()
  const rows = await q
    .selectFrom('refunds')
    .select(['payment_id', 'item_id', 'amount', 'tax'])
    .where('payment_id', 'in', paymentIds)
    .where('status', '<>', 'failed')
    .execute()
  return group(rows.map((row) => [row.payment_id, { lineId: row.item_id, amount: row.amount - row.tax }]))
}

async function readLines(q: Queries, orderIds: readonly number[]): Promise<Map<number, SoldLine[]>> {
  if (orderIds.length === 0) return new Map()
  const rows = await q
    .selectFrom('order_items')
    .select(['order_id', 'id', 'product_id', 'qty', 'refunded_quantity', 'purchase_price', 'net'])
    .where('order_id', 'in', orderIds)
    .orderBy('id')
    .execute()
  return group(
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
}

function group<T>(rows: readonly (readonly [key: number, value: T])[]): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const [key, value] of rows) {
    const known = groups.get(key)
    if (known) known.push(value)
    else groups.set(key, [value])
  }
  return groups
}
