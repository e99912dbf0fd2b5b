import { sql } from 'kysely'
import { OrderStatus, type OrderStatusName } from '../../../protocol/model/order-status.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { rangeIn, type AskedRange } from '../../platform/http/date-range.ts'
import { answerList, pageOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { matchingOrders, type HistoryPage, type OrderFilter } from './order-list.ts'

/** An order as a row of a table. Cents; totals are those of the sale. */
interface ExportedOrder {
  order_id: number
  created_at: string
  hub_id: number
  user_id: number
  processing_status: OrderStatus
  payment_status: string
  units: number
  total_price_original: number
  total_price_discounted: number
  discount_total: number
  tax_total: number
  total: number
  /** With its tax. */
  refunded_total: number
  currency: string
}

const columns = [
  ...(['order_id', 'created_at', 'hub_id', 'user_id', 'processing_status', 'payment_status'] as const),
  ...(['units', 'total_price_original', 'total_price_discounted', 'discount_total', 'tax_total'] as const),
  ...(['total', 'refunded_total', 'currency'] as const),
]

/** The filter of a request for a hub's orders, by the hub's calendar; undefined without one. */
export async function filterOf(
  q: Queries,
  asked: AskedRange & { hub_id: number; status?: readonly (OrderStatus | OrderStatusName)[] | undefined },
): Promise<OrderFilter | undefined> {
  const { hub_id, from, to, status } = asked
  if (from === undefined && to === undefined && status === undefined) return undefined
  const hub = await q.selectFrom('hubs').select('timezone').where('id', '=', hub_id).executeTakeFirstOrThrow()
  const codes = status?.map((each) => (typeof each === 'number' ? each : OrderStatus[each]))
  return {
    ...rangeIn(hub.timezone, asked),
    statuses: codes ? [...new Set(codes)] : Object.values(OrderStatus),
  }
}

/** All matching orders as CSV, newest first. */
export const exportOrders = (q: Queries, history: HistoryPage): Promise<ReadableStream> =>
  answerList<ExportedOrder>({ query: { limit: 0 }, wantsOther: true }, columns, async ({ cursor, limit }) => {
    const ids = await matchingOrders(q, {
      ...history,
      cursor: cursor === undefined ? null : Number(cursor),
      limit: limit + 1,
    })
    return pageOf(await readOrders(q, ids), limit, ({ order_id }) => String(order_id))
  }) as Promise<ReadableStream>

async function readOrders(q: Queries, ids: readonly number[]): Promise<ExportedOrder[]> {
  if (ids.length === 0) return []
  const { rows } = await sql<Omit<ExportedOrder, 'created_at' | 'discount_total'> & { at: number }>`
    select o.id as order_id, o.created_at as at, o.hub_id, o.user_id, o.processing_status, o.payment_status,
      o.total_price_original, o.total_price_discounted, o.tax_total, o.total, o.currency,
      (select sum(i.qty) from order_items as i where i.order_id = o.id) as units,
      (select coalesce(sum(r.amount), 0) from refunds as r join payments as p on p.id = r.payment_id
        where r.order_id = o.id and r.status = 'succeeded' and p.is_late = 0) as refunded_total
    from orders as o where o.id in (${sql.join(ids)})`.execute(q)
  const known = new Map(rows.map((row) => [row.order_id, row]))
  return ids.map((id): ExportedOrder => {
    const { at, ...order } = known.get(id)!
    const discount_total = order.total_price_original - order.total_price_discounted
    return { ...order, created_at: timestamp(at), discount_total }
  })
}
