import type { Selectable } from 'kysely'
import { localDay } from '../calendar/zone.ts'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import { saleLines, type ReturnedMoney, type Sale, type SaleLine, type SoldLine } from './sale.ts'

type SaleRow = Selectable<Tables['sales']>

/** The sales that some orders are, from the books; those that nobody paid for are left out. */
export async function readSales(q: Queries, orderIds: readonly number[]): Promise<Sale[]> {
  const orders = await q
    .selectFrom('orders')
    .innerJoin('hubs', 'hubs.id', 'orders.hub_id')
    .innerJoin('payments', 'payments.order_id', 'orders.id')
    .select(['orders.id', 'orders.hub_id', 'orders.user_id', 'orders.queued_at', 'hubs.timezone'])
    .where('orders.id', 'in', orderIds)
    .where('payments.status', '=', 'completed')
    .where('payments.is_late', '=', 0)
    .orderBy('orders.id')
    .execute()
  if (orders.length === 0) return []
  const paid = orders.map(({ id }) => id)
  const lines = await readLines(q, paid)
  const refunds = await readRefunds(q, paid)
  return orders.map((order) => ({
    orderId: order.id,
    hubId: order.hub_id,
    userId: order.user_id,
    day: localDay(order.timezone, order.queued_at!),
    lines: saleLines(lines.get(order.id) ?? [], refunds.get(order.id) ?? []),
  }))
}

/** The sales of some orders as the summaries hold them. */
export async function recordedSales(q: Queries, orderIds: readonly number[]): Promise<Sale[]> {
  const rows = await q
    .selectFrom('sales')
    .innerJoin('orders', 'orders.id', 'sales.order_id')
    .select(['sales.order_id', 'orders.hub_id', 'sales.user_id', 'sales.day', 'sales.lines'])
    .where('sales.order_id', 'in', orderIds)
    .execute()
  return rows.map((row) => ({
    orderId: row.order_id,
    hubId: row.hub_id,
    userId: row.user_id,
    day: row.day,
    lines: JSON.parse(row.lines) as SaleLine[],
  }))
}

export const rowOf = ({ orderId, userId, day, lines }: Sale): SaleRow => ({
  order_id: orderId,
  user_id: userId,
  day,
  lines: JSON.stringify(lines),
})

async function readLines(q: Queries, orderIds: readonly number[]): Promise<Map<number, SoldLine[]>> {
  const rows = await q
    .selectFrom('order_items')
    .select(['order_id', 'id', 'product_id', 'qty', 'refunded_quantity', 'purchase_price', 'net'])
    .where('order_id', 'in', orderIds)
    .orderBy('id')
    .execute()
  return byOrder(
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

async function readRefunds(q: Queries, orderIds: readonly number[]): Promise<Map<number, ReturnedMoney[]>> {
  const rows = await q
    .selectFrom('refunds')
    .innerJoin('payments', 'payments.id', 'refunds.payment_id')
    .select(['refunds.order_id', 'refunds.item_id', 'refunds.amount', 'refunds.tax'])
    .where('refunds.order_id', 'in', orderIds)
    .where('refunds.status', '<>', 'failed')
    .where('payments.is_late', '=', 0)
    .execute()
  return byOrder(rows.map((row) => [row.order_id, { lineId: row.item_id, amount: row.amount - row.tax }]))
}

function byOrder<T>(rows: readonly (readonly [orderId: number, value: T])[]): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const [orderId, value] of rows) {
    const group = groups.get(orderId)
    if (group) group.push(value)
    else groups.set(orderId, [value])
  }
  return groups
}
