import { sql } from 'kysely'
import type { OwnerOrder } from '../../protocol/contract/owner-orders.ts'
import { ApiError } from '../http/api-error.ts'
import type { Queries } from '../store/database.ts'
import { containsPattern, prefixPattern } from '../store/like.ts'
import { timestamp } from './timestamps.ts'

export interface HistoryPage {
  hubId: number
  /** 1–100. */
  limit: number
  /** The last order's id of the page before. */
  cursor: number | null
  search: string | null
}

/**
 * A hub's order history, newest first (O §4.3). An order is part of it once its prices were frozen; a cart is its
 * customer's business.
 */
export async function orderHistory(
  q: Queries,
  { hubId, limit, cursor, search }: HistoryPage,
): Promise<{ data: OwnerOrder[]; next_cursor: number | null; has_more: boolean }> {
  if (cursor !== null) await requireCursor(q, hubId, cursor)
  let page = q
    .selectFrom('orders')
    .selectAll()
    .where('hub_id', '=', hubId)
    .where('total', 'is not', null)
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (cursor !== null) page = page.where('id', '<', cursor)
  if (search !== null && search !== '') page = page.where(matches(search))
  const rows = await page.execute()
  const hasMore = rows.length > limit
  const shown = rows.slice(0, limit)
  const items = await itemsOf(
    q,
    shown.map(({ id }) => id),
  )
  return {
    data: shown.map((order) => ({
      id: order.id,
      user_id: order.user_id,
      total_price_original: order.total_price_original!,
      total_price_discounted: order.total_price_discounted!,
      payment_status: order.payment_status as OwnerOrder['payment_status'],
      processing_status: order.processing_status,
      created_at: timestamp(order.created_at),
      order_items: items.get(order.id) ?? [],
    })),
    next_cursor: hasMore ? shown.at(-1)!.id : null,
    has_more: hasMore,
  }
}

async function requireCursor(q: Queries, hubId: number, cursor: number): Promise<void> {
  const known = await q
    .selectFrom('orders')
    .select('id')
    .where('id', '=', cursor)
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  if (!known) throw new ApiError('invalid_cursor')
}

/** An exact order id, a part of an item's name, or the beginning of a UPC (contract §5). */
function matches(search: string) {
  const id = /^\d{1,9}$/.test(search) ? Number(search) : -1
  return sql<boolean>`(orders.id = ${id} or exists (
    select 1 from order_items as i where i.order_id = orders.id
    and (lower(i.name) like ${containsPattern(search)} escape '!' or i.upc like ${prefixPattern(search)} escape '!')))`
}

async function itemsOf(
  q: Queries,
  orderIds: readonly number[],
): Promise<Map<number, OwnerOrder['order_items']>> {
  const byOrder = new Map<number, OwnerOrder['order_items']>()
  if (orderIds.length === 0) return byOrder
  const rows = await q
    .selectFrom('order_items')
    .selectAll()
    .where('order_id', 'in', orderIds)
    .orderBy('id')
    .execute()
  for (const row of rows) {
    const items = byOrder.get(row.order_id) ?? []
    items.push({
      productUPC: row.upc!,
      name: row.name!,
      qty: row.qty,
      dropped: row.qty_dropped >= row.qty,
      qty_dropped: row.qty_dropped,
      refunded_quantity: row.refunded_quantity,
      price: row.unit_price!,
      image_url: row.image_url!,
    })
    byOrder.set(row.order_id, items)
  }
  return byOrder
}
