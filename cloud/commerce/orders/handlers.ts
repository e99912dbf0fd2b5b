import type { Routes } from '../../../protocol/contract/routes.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import { OrderStatus, type OrderStatusName } from '../../../protocol/model/order-status.ts'
import type { VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import { requireHub } from '../../platform/credentials/hub-access.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reply, type HandlerInput, type Handlers } from '../../platform/http/handler.ts'
import { jsonWithImages, withImages } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { countItems, createOrder, reorder, setItem } from './cart.ts'
import { amountObstacle, checkoutObstacles } from './checkout.ts'
import { listOrders, orderHistory, matchingOrders, type HistoryPage, type OrderFilter } from './order-list.ts'
import { hubIntake, notSellingReason } from './intake.ts'
import { readOwnOrder, stateObstacle, type OrderRow } from './order-rows.ts'
import { viewOrder } from './order-view.ts'
import { cartLines, priceCart } from './price-cart.ts'
import { queueEstimate } from './queue-position.ts'
import { transferOrder } from './transfer-order.ts'
import { blockingOrder, readPayer, unpaidBounds } from './unpaid.ts'
import { sql } from 'kysely'
import { timestamp } from '../../platform/calendar/days.ts'
import { rangeIn, requireOrder, type AskedRange } from '../../platform/http/date-range.ts'
import { answerList, pageOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import type { Storefront } from '../../../protocol/contract/consumer-products.ts'
import { shownHubStatus } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import { WHOLE } from '../catalogue/units.ts'

/** C §4.2: the orders of a customer. `leastByCard`: the minimum total of card payments. */
export function orderHandlers(
  context: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
  leastByCard: () => number,
): Handlers<
  | 'consumer.orders.create'
  | 'consumer.orders.list'
  | 'consumer.orders.count_items'
  | 'consumer.orders.reorder'
  | 'consumer.orders.get'
  | 'consumer.orders.set_item'
  | 'consumer.orders.checkout_available'
  | 'consumer.orders.queue_position'
> {
  const q = context.db.kysely
  const view = async (order: OrderRow) => withImages(addressOf, await viewOrder(q, context, order))
  return {
    async 'consumer.orders.create'({ params, query, memento }) {
      const userId = params.user_id
      const order = memento
        ? await readOwnOrder(q, { orderId: memento['order_id'] as number, userId })
        : await createOrder(context, { userId, hubId: query.hub_id })
      return reply(await view(order), { memento: { order_id: order.id } })
    },
    async 'consumer.orders.list'({ params, query }) {
      const page = await listOrders(q, context, {
        userId: params.user_id,
        statuses: query.order_processing_statuses,
        orderBy: query.order_by,
        descending: query.is_desc,
        page: query.page,
        size: query.size,
      })
      return { ...page, items: page.items.map((order) => withImages(addressOf, order)) }
    },
    'consumer.orders.count_items': ({ params, query }) => countItems(q, params.user_id, query.hub_id),
    async 'consumer.orders.reorder'(input) {
      const { order, unavailable } = await reordered(context, input)
      const body = { ...(await view(order)), unavailable_items: unavailable }
      return reply(body, { memento: { order_id: order.id, unavailable } })
    },
    'consumer.orders.get': async ({ params, query }) => view(await readOwnOrder(q, keyOf(params, query))),
    async 'consumer.orders.set_item'({ params, query, body }) {
      const order = await setItem(context, keyOf(params, query), {
        productId: body.product_id,
        quantity: body.quantity,
        version: body.version,
      })
      return view(order)
    },
    'consumer.orders.checkout_available': async ({ params, query, network }) =>
      checkoutAnswer(context, await readOwnOrder(q, keyOf(params, query)), network, leastByCard()),
    async 'consumer.orders.queue_position'({ params, query }) {
      const order = await readOwnOrder(q, keyOf(params, query))
      const place = await queueEstimate(q, context, order)
      return {
        order_id: order.id,
        position: place.position,
        ahead: place.ahead,
        estimated_wait_seconds: place.estimatedWaitSeconds,
        processing_status: order.processing_status,
      }
    },
  }
}

/** The new cart; for a repeated request the cart of the first request. */
async function reordered(
  context: CloudContext,
  { params, query, memento }: HandlerInput<Routes['consumer.orders.reorder']>,
): ReturnType<typeof reorder> {
  const userId = params.user_id
  if (memento === undefined)
    return reorder(context, {
      userId,
      sourceOrderId: params.source_order_id,
      targetHubId: query.target_hub_id,
    })
  const order = await readOwnOrder(context.db.kysely, { orderId: memento['order_id'] as number, userId })
  return { order, unavailable: memento['unavailable'] as Awaited<ReturnType<typeof reorder>>['unavailable'] }
}

/** C §4.2: whether an order could be paid now, and the reasons if not. `least`: the minimum total of card payments. */
async function checkoutAnswer(context: CloudContext, order: OrderRow, network: string, least: number) {
  const q = context.db.kysely
  const lines = await cartLines(q, order.id)
  const intake = await hubIntake(q, context, order.hub_id)
  const total = order.total ?? (await priceCart(q, context, order, lines)).total
  const reasons = [...obstacleOf(order)]
  if (order.processing_status === OrderStatus.NEW) {
    const payer = await readPayer(q, order.user_id)
    const unpaid = unpaidBounds(context, payer, network)
    const obstacles = await checkoutObstacles(q, lines, intake, { claim: false, unpaid })
    const tooSmall = amountObstacle(total, least)
    if (blockingOrder(context.settings.unpaidOrdersPerUser, payer.unpaid, order.id, false) !== undefined)
      reasons.push('order_state_conflict')
    reasons.push(...[...obstacles, ...(tooSmall ? [tooSmall] : [])].map(({ code }) => code))
  }
  return { available: reasons.length === 0, reasons, total }
}

/** C §4.3: transfers a guest's order to a user. */
export const transferHandlers = (
  context: CloudContext,
  verify: VerifyIdentity,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<'consumer.orders.transfer'> => ({
  async 'consumer.orders.transfer'({ body, credential }) {
    const { order, merged } = await transferOrder(context, verify, {
      userId: credential.userId,
      anonymousUserId: body.anonymous_user_id,
      orderId: body.order_id,
      anonymousToken: body.anonymous_token,
    })
    const view = await viewOrder(context.db.kysely, context, order)
    return { order: withImages(addressOf, view), merged, source_order_id: body.order_id }
  },
})

/** O §4.3: the orders of a hub for its owner. */
export const ownerOrderHandlers = (
  { db, settings }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<'owner.orders.list'> => ({
  async 'owner.orders.list'({ query, credential, wantsOther }) {
    const q = db.kysely
    const history = {
      hubId: query.hub_id,
      ownerId: credential.ownerId ?? (await requireHub(q, credential, query.hub_id)).owner_id,
      limit: query.limit,
      cursor: query.cursor,
      search: query.search,
      searchNames: settings.orderSearchNames,
      filter: await filterOf(q, query),
    }
    if (wantsOther) return exportOrders(q, history)
    return jsonWithImages(addressOf, await orderHistory(q, history))
  },
})

const keyOf = (params: { user_id: number; order_id: number }, query?: { hub_id: number }) => ({
  userId: params.user_id,
  orderId: params.order_id,
  hubId: query?.hub_id,
})

/** Why an order that is no longer a cart cannot be paid. */
function obstacleOf(order: OrderRow): ErrorCode[] {
  const { processing_status: status } = order
  if (status === OrderStatus.NEW || status === OrderStatus.PENDING_PAYMENT) return []
  return [stateObstacle(order)]
}

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
  requireOrder([hub.timezone], asked)
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

/** A hub as customers see it. */
export const storefrontHandlers = (
  context: CloudContext,
  cards: Storefront['cards'],
): Handlers<'consumer.hubs.get'> => ({
  async 'consumer.hubs.get'({ params: { hub_id: hubId } }) {
    const q = context.db.kysely
    const hub = await q
      .selectFrom('hubs')
      .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
      .selectAll('hubs')
      .select('hub_sessions.last_heard_at')
      .where('hubs.id', '=', hubId)
      .executeTakeFirst()
    if (!hub) throw new ApiError('hub_not_found')
    const closed = await q
      .selectFrom('blocked_places')
      .select(['cabinet', 'reason'])
      .where('hub_id', '=', hubId)
      .where('shelf', '=', WHOLE.shelf)
      .orderBy('cabinet')
      .execute()
    const byCabinet = new Map(closed.map(({ cabinet, reason }) => [cabinet, reason]))
    return {
      ...HubSummary.parse({ ...hub, hub_status: shownHubStatus(hub) }),
      timezone: hub.timezone,
      currency: context.settings.currency,
      closed_reason: await notSellingReason(q, context, hubId),
      closed_cabinets: [...byCabinet].map(([cabinet, reason]) => ({
        cabinet,
        reason: reason as Storefront['closed_cabinets'][number]['reason'],
      })),
      cards,
    }
  },
})
