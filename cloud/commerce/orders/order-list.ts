import { type Expression, sql } from 'kysely'
import type { Order, OrderSort } from '../../../protocol/contract/consumer-orders.ts'
import type { OwnerOrder } from '../../../protocol/contract/owner-orders.ts'
import { OrderStatus, type OrderStatusName } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import { offsetOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'
import { jsonOf, JsonText } from '../../platform/store/json.ts'
import { statement } from '../../platform/store/statement.ts'
import { searchText } from '../../../protocol/model/search-text.ts'
import { viewOrders } from './order-view.ts'
import { ordersNamed, type NameSearch } from './sold-names.ts'

export interface OrderListQuery {
  userId: number
  /** By number or name; undefined: all statuses. */
  statuses: readonly (OrderStatus | OrderStatusName)[] | undefined
  orderBy: OrderSort
  descending: boolean
  page: number
  size: number
}

interface OrderPage {
  items: Order[]
  total: number
  page: number
  size: number
  pages: number
}

/** A page of a user's orders (C §4.2). The cost depends only on the number of the user's orders. */
export async function listOrders(
  q: Queries,
  context: CloudContext,
  { userId, statuses, orderBy, descending, page, size }: OrderListQuery,
): Promise<OrderPage> {
  let matching = q.selectFrom('orders').where('user_id', '=', userId)
  if (statuses !== undefined)
    matching = matching.where(
      'processing_status',
      'in',
      statuses.map((status) => (typeof status === 'number' ? status : OrderStatus[status])),
    )
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const direction = descending ? 'desc' : 'asc'
  const rows = await matching
    .selectAll()
    .orderBy(sortKeys[orderBy], direction)
    .orderBy('id', direction)
    .limit(size)
    .offset(offsetOf(page, size))
    .execute()
  return { items: await viewOrders(q, context, rows), total, page, size, pages: Math.ceil(total / size) }
}

const sortKeys = {
  created_at: sql.ref('created_at'),
  updated_at: sql.ref('updated_at'),
  // The databases sort null differently.
  total: sql`coalesce(total, 0)`,
  processing_status: sql.ref('processing_status'),
  order_id: sql.ref('id'),
}

export interface HistoryPage {
  hubId: number
  /** The owner at the sale. */
  ownerId: number
  /** 1–100. */
  limit: number
  /** The id of the previous page's last order. It is a position: the order may have changed or been deleted since. */
  cursor: number | null
  search: string | null
  /** Maximum number of names that a search compares (`ORDER_SEARCH_NAMES`). */
  searchNames: number
  /** Undefined: every order. */
  filter?: OrderFilter | undefined
}

/** Created from `since` to before `until`, in one of these statuses. */
export interface OrderFilter {
  since: number
  until: number
  statuses: readonly OrderStatus[]
}

type OrderColumns = Record<Exclude<keyof OwnerOrder, 'order_items'>, Expression<unknown>>
type ItemColumns = Record<keyof OwnerOrder['order_items'][number], Expression<unknown>>

interface WantedPage extends Pick<HistoryPage, 'hubId' | 'ownerId' | 'limit'> {
  below: number
}

/** A page of a hub's orders with frozen prices, newest first, below an id. */
const ordersOf = (q: Queries, { hubId, ownerId, below, limit }: WantedPage) =>
  q
    .selectFrom('orders')
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .where('total', 'is not', null)
    .where('id', '<', below)
    .orderBy('id', 'desc')
    .limit(limit)

/** The orders of a page and their items, both as JSON (O §2). */
function page(q: Queries, wanted: WantedPage) {
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
  } satisfies ItemColumns)
  const order = json.object({
    id: ref('orders.id'),
    user_id: ref('orders.user_id'),
    total_price_original: ref('orders.total_price_original'),
    total_price_discounted: ref('orders.total_price_discounted'),
    payment_status: ref('orders.payment_status'),
    processing_status: ref('orders.processing_status'),
    created_at: json.timestamp(ref('orders.created_at')),
  } satisfies OrderColumns)
  const items = sql<string>`(select ${json.text(json.arrayOf(item, ref('i.id')))} from order_items as i where i.order_id = orders.id)`
  return ordersOf(q, wanted).select([
    'id',
    'created_at',
    'processing_status',
    json.text(order).as('body'),
    items.as('items'),
  ])
}
const anyPage = statement(page)
const pageOf = statement((q, wanted: WantedPage & { ids: readonly number[] }) =>
  page(q, wanted).where('id', 'in', numbersIn(q, wanted.ids)),
)

/**
 * A hub's order history, newest first (O §4.3), as JSON. It contains orders with frozen prices; carts are private to
 * their customers.
 */
export async function orderHistory(
  q: Queries,
  history: HistoryPage,
): Promise<JsonText<{ data: OwnerOrder[]; next_cursor: number | null; has_more: boolean }>> {
  const { hubId, ownerId, limit, cursor, search, searchNames, filter } = history
  if (cursor !== null) await requirePlace(q, { hubId, ownerId, cursor })
  // One more row than shown reveals whether there are more.
  const wanted = { hubId, ownerId, below: cursor ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 }
  const rows = filter
    ? await inOrder(q, wanted, await matchingOrders(q, { ...history, limit: limit + 1 }))
    : search === null || searchText(search) === ''
      ? await anyPage(q, wanted)
      : await found(q, { ...wanted, search, names: searchNames })
  const hasMore = rows.length > limit
  const shown = hasMore ? rows.slice(0, limit) : rows
  const next = hasMore ? shown.at(-1)!.id : null
  return new JsonText(
    `{"data":[${shown.map(withItems).join(',')}],"next_cursor":${next},"has_more":${hasMore}}`,
  )
}

/** Joins two JSON texts into one object, because a database would have to parse them to nest them. */
const withItems = ({ body, items }: { body: string; items: string }): string =>
  `${body.slice(0, body.lastIndexOf('}'))},"order_items":${items}}`

/** Orders by their ids, in the order of the ids. */
async function inOrder(q: Queries, wanted: WantedPage, ids: readonly number[]) {
  const rows = ids.length === 0 ? [] : await pageOf(q, { ...wanted, below: Number.MAX_SAFE_INTEGER, ids })
  const known = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => known.get(id)!)
}

/** The ids of the matching orders after a cursor, newest first. */
export async function matchingOrders(q: Queries, history: HistoryPage): Promise<number[]> {
  const { hubId, ownerId, limit, cursor, search, searchNames: names, filter } = history
  const below = cursor ?? Number.MAX_SAFE_INTEGER
  if (search === null || searchText(search) === '')
    return filter
      ? filteredOrders(q, { ...history, filter })
      : idsOf(await idPage(q, { hubId, ownerId, below, limit }))
  const ids: number[] = []
  let next = below
  while (ids.length < limit) {
    const page = await found(q, {
      hubId,
      ownerId,
      below: next,
      limit: Math.max(limit, SEARCHED_AT_ONCE),
      search,
      names,
    })
    const last = page.at(-1)
    if (!last) break
    ids.push(...idsOf(page.filter((row) => !filter || isWithin(row, filter))))
    next = last.id
  }
  return ids.slice(0, limit)
}

/** Orders that a search reads at once if a filter may leave most of them out. */
const SEARCHED_AT_ONCE = 200

const idsOf = (rows: readonly { id: number }[]): number[] => rows.map(({ id }) => id)

const isWithin = (
  order: { created_at: number; processing_status: OrderStatus },
  { since, until, statuses }: OrderFilter,
): boolean =>
  order.created_at >= since && order.created_at < until && statuses.includes(order.processing_status)

const idPage = statement((q, wanted: WantedPage) => ordersOf(q, wanted).select('id'))

/** Reads the newest orders of each status from one index, so that the cost does not grow with the orders. */
async function filteredOrders(
  q: Queries,
  { hubId, ownerId, limit, cursor, filter }: HistoryPage & { filter: OrderFilter },
): Promise<number[]> {
  const { since, until, statuses } = filter
  if (statuses.length === 0) return []
  const [last] = cursor === null ? [] : await placeOf(q, { cursor })
  const after = last ? sql` and (created_at, id) < (${last.created_at}, ${cursor})` : sql``
  const parts = statuses.map(
    (status, index) => sql`select * from (
      select id, created_at from orders
      where hub_id = ${hubId} and owner_id = ${ownerId} and processing_status = ${sql.lit(status)}
        and created_at >= ${since} and created_at < ${until} and total is not null${after}
      order by created_at desc, id desc limit ${sql.lit(limit)}) as part${sql.lit(index)}`,
  )
  const { rows } = await sql<{ id: number }>`
    select id from (${sql.join(parts, sql` union all `)}) as matching
    order by created_at desc, id desc limit ${sql.lit(limit)}`.execute(q)
  return idsOf(rows)
}

/** The order at a cursor, or the order before it if that one has been deleted. */
const placeOf = statement((q, { cursor }: { cursor: number }) =>
  q
    .selectFrom('orders')
    .select(['id', 'hub_id', 'owner_id', 'created_at'])
    .select((eb) =>
      eb
        .selectFrom('orders as o')
        .select((all) => all.fn.max('o.id').as('id'))
        .as('newest'),
    )
    .where('id', '<=', cursor)
    .orderBy('id', 'desc')
    .limit(1),
)

/** Throws `invalid_cursor` for an order of another hub or owner, and for the number of a future order. */
async function requirePlace(
  q: Queries,
  { hubId, ownerId, cursor }: Pick<HistoryPage, 'hubId' | 'ownerId'> & { cursor: number },
): Promise<void> {
  const [place] = await placeOf(q, { cursor })
  const isKnown =
    place &&
    (place.id < cursor
      ? cursor < place.newest!
      : // An order whose payment has ended has no owner.
        place.hub_id === hubId && (place.owner_id === ownerId || place.owner_id === null))
  if (!isKnown) throw new ApiError('invalid_cursor')
}

const lastOrder = statement((q, { hubId, ownerId }: Pick<HistoryPage, 'hubId' | 'ownerId'>) =>
  q
    .selectFrom('orders')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .orderBy('id', 'desc')
    .limit(1),
)

/** By an exact order id, a part of an item's name (in any case, with or without accents), or the beginning of a UPC. */
async function found(q: Queries, wanted: NameSearch & WantedPage) {
  const { search, ...bounds } = wanted
  const [last] = await lastOrder(q, wanted)
  // The newest orders of the hub may belong to a later owner.
  const ids = await ordersNamed(q, { ...wanted, below: Math.min(wanted.below, (last?.id ?? 0) + 1) })
  if (/^\d{1,10}$/.test(search)) ids.push(Number(search))
  return ids.length === 0 ? [] : pageOf(q, { ...bounds, ids })
}
