import { sql, type Expression } from 'kysely'
import type { OwnerOrder } from '../../../protocol/contract/owner-orders.ts'
import { ApiError } from '../../platform/api-error.ts'
import { JsonText } from '../../platform/store/json.ts'
import type { Queries } from '../../platform/store/database.ts'
import { jsonOf } from '../../platform/store/json.ts'
import { containsPattern, prefixPattern } from '../../platform/store/like.ts'
import { statement } from '../../platform/store/statement.ts'

export interface HistoryPage {
  hubId: number
  /** 1–100. */
  limit: number
  /** The last order's id of the page before. */
  cursor: number | null
  search: string | null
}

type Order = Record<keyof OwnerOrder, Expression<unknown>>
type Item = Record<keyof OwnerOrder['order_items'][number], Expression<unknown>>

/** Orders with their items as JSON (O §2), newest first, below an id. */
function page(q: Queries, { hubId, below, limit }: { hubId: number; below: number; limit: number }) {
  const json = jsonOf(q)
  const ref = (name: string) => sql.ref(name)
  const item = json.object({
    productUPC: ref('i.upc'),
    name: ref('i.name'),
    qty: ref('i.qty'),
    dropped: json.boolean(sql`i.qty_dropped >= i.qty`),
    qty_dropped: ref('i.qty_dropped'),
    refunded_quantity: ref('i.refunded_quantity'),
    price: ref('i.unit_price'),
    image_url: ref('i.image_url'),
  } satisfies Item)
  const order = json.object({
    id: ref('orders.id'),
    user_id: ref('orders.user_id'),
    total_price_original: ref('orders.total_price_original'),
    total_price_discounted: ref('orders.total_price_discounted'),
    payment_status: ref('orders.payment_status'),
    processing_status: ref('orders.processing_status'),
    created_at: json.timestamp(ref('orders.created_at')),
    order_items: sql`(select ${json.arrayOf(item, ref('i.id'))} from order_items as i where i.order_id = orders.id)`,
  } satisfies Order)
  return q
    .selectFrom('orders')
    .where('hub_id', '=', hubId)
    .where('total', 'is not', null)
    .where('id', '<', below)
    .orderBy('id', 'desc')
    .limit(limit)
    .select(['id', json.text(order).as('body')])
}
const anyPage = statement(page)

/**
 * A hub's order history, newest first (O §4.3), as JSON. An order is part of it once its prices were frozen; a cart is its
 * customer's business.
 */
export async function orderHistory(
  q: Queries,
  { hubId, limit, cursor, search }: HistoryPage,
): Promise<JsonText<{ data: OwnerOrder[]; next_cursor: number | null; has_more: boolean }>> {
  if (cursor !== null) await requireCursor(q, hubId, cursor)
  // One more than is shown tells whether there are more.
  const wanted = { hubId, below: cursor ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 }
  const rows =
    search === null || search === ''
      ? await anyPage(q, wanted)
      : await page(q, wanted).where(matches(search)).execute()
  const hasMore = rows.length > limit
  const shown = hasMore ? rows.slice(0, limit) : rows
  const next = hasMore ? shown.at(-1)!.id : null
  return new JsonText(
    `{"data":[${shown.map(({ body }) => body).join(',')}],"next_cursor":${next},"has_more":${hasMore}}`,
  )
}

const knownCursor = statement((q, { hubId, cursor }: { hubId: number; cursor: number }) =>
  q.selectFrom('orders').select('id').where('id', '=', cursor).where('hub_id', '=', hubId),
)

async function requireCursor(q: Queries, hubId: number, cursor: number): Promise<void> {
  const [known] = await knownCursor(q, { hubId, cursor })
  if (!known) throw new ApiError('invalid_cursor')
}

/** An exact order id, a part of an item's name, or the beginning of a UPC (contract §5). */
function matches(search: string) {
  const id = /^\d{1,9}$/.test(search) ? Number(search) : -1
  return sql<boolean>`(orders.id = ${id} or exists (
    select 1 from order_items as i where i.order_id = orders.id
    and (lower(i.name) like ${containsPattern(search)} escape '!' or i.upc like ${prefixPattern(search)} escape '!')))`
}
