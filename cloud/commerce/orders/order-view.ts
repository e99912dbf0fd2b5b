import { Order, type OrderItem } from '../../../protocol/contract/consumer-orders.ts'
import { orderStatusName, OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { readPaymentStatus } from './payment-status.ts'
import { parseBins, type ItemRow, type OrderRow } from './order-rows.ts'
import { cartLines, priceCart } from './price-cart.ts'
import { queuePlace, type QueuePlace } from './queue-position.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'

const Deals = Order.shape.deals

/** An order in its customer's view. */
export async function viewOrder(q: Queries, context: CloudContext, order: OrderRow): Promise<Order> {
  const [view] = await viewOrders(q, context, [order])
  return view!
}

/**
 * An order with its status at a time, but with the present state of its lines and its money. If it was never sold (its
 * money came late), it has no lines and zero totals: a cart is private to its customer.
 */
export async function viewStation(q: Queries, context: CloudContext, station: OrderRow): Promise<Order> {
  const isSold = station.queued_at !== null
  const [items, place] = await Promise.all([isSold ? itemsOf(q, [station.id]) : [], queuePlace(q, station)])
  const payment_status = items[0]?.payment_status ?? (await readPaymentStatus(q, station.id))
  return view(context, { ...station, payment_status }, isSold ? frozen(station, items) : nothing, place)
}

/** The same for several orders, at hardly more cost. Carts are computed one by one, but a user has few of them. */
export async function viewOrders(
  q: Queries,
  context: CloudContext,
  orders: readonly OrderRow[],
): Promise<Order[]> {
  const frozenItems = await itemsOf(
    q,
    orders.filter(({ total }) => total !== null).map(({ id }) => id),
  )
  const views: Order[] = []
  for (const order of orders)
    views.push(
      view(
        context,
        order,
        order.total === null ? await cart(q, context, order) : frozen(order, frozenItems),
        await queuePlace(q, order),
      ),
    )
  return views
}

function view(
  context: CloudContext,
  order: OrderRow,
  { items, totals, deals }: Contents,
  place: QueuePlace,
): Order {
  const isUnpaid = order.processing_status <= OrderStatus.PENDING_PAYMENT
  return {
    order_id: order.id,
    user_id: order.user_id,
    hub_id: order.hub_id,
    processing_status: order.processing_status,
    processing_status_name: orderStatusName(order.processing_status),
    payment_status: order.payment_status,
    items,
    ...totals,
    discount_total: totals.total_price_original - totals.total_price_discounted,
    currency: order.currency,
    deals,
    bins: parseBins(order.bins),
    queue_position: place.position,
    expires_at: isUnpaid ? timestamp(order.touched_at + context.settings.idleOrderMs) : null,
    ready_at: timestampOrNull(order.ready_at),
    version: order.version,
    created_at: timestamp(order.created_at),
    updated_at: timestamp(order.updated_at),
  }
}

type Totals = Pick<Order, 'total_price_original' | 'total_price_discounted' | 'tax_total' | 'total'>
interface Contents {
  items: OrderItem[]
  totals: Totals
  deals: Order['deals']
}

const nothing: Contents = {
  items: [],
  totals: { total_price_original: 0, total_price_discounted: 0, tax_total: 0, total: 0 },
  deals: [],
}

/** The present prices of a cart. */
async function cart(q: Queries, context: CloudContext, order: OrderRow): Promise<Contents> {
  const lines = await cartLines(q, order.id)
  const priced = await priceCart(q, context, order, lines)
  return {
    items: lines.map((line, index) => ({
      order_item_id: line.id,
      product_id: line.product_id,
      productUPC: line.upc,
      name: line.name,
      qty: line.qty,
      unit_price_original: line.original_price,
      price: priced.lines[index]!.unitPrice,
      line_total: priced.lines[index]!.net,
      dropped: false,
      qty_dropped: 0,
      refunded_quantity: 0,
      bin_number: null,
      image_url: line.image_url,
    })),
    totals: {
      total_price_original: priced.totalOriginal,
      total_price_discounted: priced.totalDiscounted,
      tax_total: priced.taxTotal,
      total: priced.total,
    },
    deals: priced.deals,
  }
}

type ItemOfOrder = ItemRow & Pick<OrderRow, 'payment_status'>

/** The lines of orders, oldest first, each with the refunds of its order. */
async function itemsOf(q: Queries, orderIds: readonly number[]): Promise<ItemOfOrder[]> {
  return orderIds.length === 0 ? [] : itemsOfOrders(q, { orderIds })
}

const itemsOfOrders = statement((q, { orderIds }: { orderIds: readonly number[] }) =>
  q
    .selectFrom('order_items')
    .innerJoin('orders', 'orders.id', 'order_items.order_id')
    .select(allOf('order_items').map((column) => `order_items.${column}` as const))
    .select('orders.payment_status')
    .where('order_items.order_id', 'in', numbersIn(q, orderIds))
    .orderBy('order_items.id'),
)

function frozen(order: OrderRow, items: readonly ItemRow[]): Contents {
  const rows = items.filter(({ order_id }) => order_id === order.id)
  return {
    items: rows.map((row) => ({
      order_item_id: row.id,
      product_id: row.product_id,
      productUPC: row.upc!,
      name: row.name!,
      qty: row.qty,
      unit_price_original: row.unit_price_original!,
      price: row.unit_price!,
      line_total: row.net!,
      dropped: row.qty_dropped >= row.qty,
      qty_dropped: row.qty_dropped,
      refunded_quantity: row.refunded_quantity,
      bin_number: parseBins(row.bins)[0] ?? null,
      image_url: row.image_url!,
    })),
    totals: {
      total_price_original: order.total_price_original!,
      total_price_discounted: order.total_price_discounted!,
      tax_total: order.tax_total!,
      total: order.total!,
    },
    deals: order.deals === null ? [] : Deals.parse(JSON.parse(order.deals)),
  }
}
