import { uuidv7 } from '../../../protocol/model/ids.ts'
import { isEditable, OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { availableOf, availableOfEach } from '../catalogue/reservations.ts'
import { requireAccepting } from './intake.ts'
import { scheduleDeadlines } from './move-order.ts'
import {
  LAST_ACTIVE,
  lockOrder,
  lockOwnOrder,
  type OrderKey,
  type OrderRow,
  readOwnOrder,
  unfrozenLine,
  unfrozenOrder,
} from './order-rows.ts'

/** The user's active order at a hub, or a new, empty cart there. */
export function createOrder(
  context: CloudContext,
  { userId, hubId }: { userId: number; hubId: number },
): Promise<OrderRow> {
  return context.db.transact((tx) => openCart(tx, context, { userId, hubId }))
}

/** The same within a transaction. Throws `hub_not_found`, `hub_not_accepting_orders`. */
async function openCart(
  tx: Tx,
  context: CloudContext,
  { userId, hubId }: { userId: number; hubId: number },
): Promise<OrderRow> {
  const active = await activeOrder(tx.q, userId, hubId)
  if (active) return active
  await requireAccepting(tx.q, context, hubId)
  const now = context.runtime.clock.now()
  const created = await tx.q
    .insertInto('orders')
    .values({
      uuid: uuidv7(context.runtime),
      user_id: userId,
      hub_id: hubId,
      processing_status: OrderStatus.NEW,
      payment_status: 'unpaid',
      currency: context.settings.currency,
      ...unfrozenOrder,
      version: 1,
      queued_order: null,
      failure_reason: null,
      created_at: now,
      updated_at: now,
      touched_at: now,
      queued_at: null,
      preparing_at: null,
      ready_at: null,
      finished_at: null,
    })
    // Another request of the same user may have been faster.
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (!created) return (await activeOrder(tx.q, userId, hubId))!
  await scheduleDeadlines(tx, context, created)
  return created
}

/** A user's active order at a hub; there is at most one. */
export function activeOrder(q: Queries, userId: number, hubId: number): Promise<OrderRow | undefined> {
  return q
    .selectFrom('orders')
    .selectAll()
    .where('user_id', '=', userId)
    .where('hub_id', '=', hubId)
    .where('processing_status', '<=', LAST_ACTIVE)
    .executeTakeFirst()
}

interface ItemChange {
  productId: number
  /** Absolute quantity; 0 removes the line. */
  quantity: number
  /** The version that the caller has read; optional. */
  version?: number | undefined
}

/** Sets the quantity of a product in a cart. */
export function setItem(
  context: CloudContext,
  key: OrderKey,
  { productId, quantity, version }: ItemChange,
): Promise<OrderRow> {
  return context.db.transact(async (tx) => {
    const order = await lockOwnOrder(tx, key)
    if (!isEditable(order.processing_status)) throw new ApiError('order_not_editable')
    if (version !== undefined && version !== order.version)
      throw new ApiError('order_state_conflict', undefined, { version: order.version })
    if (quantity === 0) await removeLine(tx, order.id, productId)
    else await putItem(tx, order, productId, quantity)
    const now = context.runtime.clock.now()
    const changed = { version: order.version + 1, updated_at: now, touched_at: now }
    await tx.q.updateTable('orders').set(changed).where('id', '=', order.id).execute()
    return { ...order, ...changed }
  })
}

async function removeLine(tx: Tx, orderId: number, productId: number): Promise<void> {
  await tx.q
    .deleteFrom('order_items')
    .where('order_id', '=', orderId)
    .where('product_id', '=', productId)
    .execute()
}

async function putItem(tx: Tx, order: OrderRow, productId: number, quantity: number): Promise<void> {
  const product = await tx.q
    .selectFrom('products')
    .select('id')
    .where('id', '=', productId)
    .where('hub_id', '=', order.hub_id)
    .where('is_active', '=', 1)
    .executeTakeFirst()
  if (!product) throw new ApiError('product_not_found')
  const available = Math.min(await availableOf(tx.q, productId), MAX_QUANTITY)
  if (quantity > available)
    throw new ApiError('insufficient_stock', undefined, {
      items: [{ product_id: productId, requested: quantity, available }],
    })
  await putLine(tx, order.id, productId, quantity)
}

/** Maximum of units of one product in an order. */
const MAX_QUANTITY = 1000

async function putLine(tx: Tx, orderId: number, productId: number, quantity: number): Promise<void> {
  await tx.q
    .insertInto('order_items')
    .values({
      order_id: orderId,
      product_id: productId,
      qty: quantity,
      ...unfrozenLine,
      reserved: 0,
      qty_dropped: 0,
      qty_doubtful: 0,
      refunded_quantity: 0,
      bins: '[]',
    })
    .onConflict((conflict) => conflict.columns(['order_id', 'product_id']).doUpdateSet({ qty: quantity }))
    .execute()
}

interface WantedLine {
  productId: number
  quantity: number
}

/** A product with fewer available units than requested. */
interface ShortLine {
  productId: number
  requested: number
  available: number
}

/** A line of an earlier order that cannot be ordered again in full. */
interface UnavailableLine {
  /** The product at the hub of the earlier order, as are `upc` and `name`: the target hub may not have the product. */
  product_id: number
  upc: string
  name: string
  requested: number
  available: number
}

/**
 * Adds units to a cart, product by product and at most the available ones; the cart's own units count too. Returns the
 * products with less stock than requested. Call it under the cart's lock.
 */
export async function addLines(
  tx: Tx,
  { runtime }: CloudContext,
  cart: OrderRow,
  wanted: readonly WantedLine[],
): Promise<ShortLine[]> {
  const present = await tx.q
    .selectFrom('order_items')
    .select(['product_id', 'qty'])
    .where('order_id', '=', cart.id)
    .execute()
  const stock = await availableOfEach(
    tx.q,
    wanted.map(({ productId }) => productId),
  )
  const short: ShortLine[] = []
  for (const { productId, quantity } of wanted) {
    const had = present.find(({ product_id }) => product_id === productId)?.qty ?? 0
    const requested = had + quantity
    const available = Math.min(stock.get(productId)!, MAX_QUANTITY)
    if (available < requested) short.push({ productId, requested, available })
    if (available > 0) await putLine(tx, cart.id, productId, Math.min(requested, available))
    else await removeLine(tx, cart.id, productId)
  }
  const now = runtime.clock.now()
  const changed = { version: cart.version + 1, updated_at: now, touched_at: now }
  await tx.q.updateTable('orders').set(changed).where('id', '=', cart.id).execute()
  Object.assign(cart, changed)
  return short
}

interface Reorder {
  userId: number
  sourceOrderId: number
  targetHubId: number
}

/**
 * Copies the items of an earlier order into the user's cart at a hub, and creates the cart if necessary. At another
 * hub, the UPC at the sale identifies the product. Throws `order_not_found`, `order_not_editable`, and the errors of
 * creating a cart.
 */
export function reorder(
  context: CloudContext,
  { userId, sourceOrderId, targetHubId }: Reorder,
): Promise<{ order: OrderRow; unavailable: UnavailableLine[] }> {
  return context.db.transact(async (tx) => {
    const source = await readOwnOrder(tx.q, { orderId: sourceOrderId, userId })
    const cart = await lockedCart(tx, context, { userId, hubId: targetHubId })
    if (!isEditable(cart.processing_status))
      throw new ApiError('order_not_editable', undefined, { order_id: cart.id })
    // The cart already contains its own items.
    if (cart.id === source.id) return { order: cart, unavailable: [] }
    const lines = await counterparts(tx.q, source, targetHubId)
    const wanted = new Map<number, number>()
    // Two products of the earlier order may be one product at the target hub.
    for (const { targetId, qty } of lines)
      if (targetId !== undefined) wanted.set(targetId, (wanted.get(targetId) ?? 0) + qty)
    const known = [...wanted].map(([productId, quantity]) => ({ productId, quantity }))
    const short = new Map(
      (await addLines(tx, context, cart, known)).map(({ productId, ...units }) => [productId, units]),
    )
    const unavailable = lines.flatMap(({ targetId, product_id, upc, name, qty }): UnavailableLine[] => {
      const units = targetId === undefined ? { requested: qty, available: 0 } : short.get(targetId)
      if (targetId !== undefined) short.delete(targetId)
      return units ? [{ product_id, upc, name, ...units }] : []
    })
    return { order: cart, unavailable }
  })
}

/** The user's active order at a hub, locked. If it is deleted during the wait for the lock, a new one is created. */
async function lockedCart(
  tx: Tx,
  context: CloudContext,
  owner: { userId: number; hubId: number },
): Promise<OrderRow> {
  const { id } = await openCart(tx, context, owner)
  return (await lockOrder(tx, id)) ?? lockedCart(tx, context, owner)
}

/** The lines of an order, each with the corresponding product of a hub. */
async function counterparts(q: Queries, source: OrderRow, hubId: number) {
  const lines = await q
    .selectFrom('order_items as i')
    .innerJoin('products as p', 'p.id', 'i.product_id')
    .where('i.order_id', '=', source.id)
    .orderBy('i.id')
    .select((eb) => [
      'i.product_id',
      'i.qty',
      eb.fn.coalesce('i.upc', 'p.upc').as('upc'),
      eb.fn.coalesce('i.name', 'p.name').as('name'),
    ])
    .execute()
  if (lines.length === 0) return []
  const active = q
    .selectFrom('products')
    .select(['id', 'upc'])
    .where('hub_id', '=', hubId)
    .where('is_active', '=', 1)
  // A product may have had another UPC at the sale.
  const isSameHub = source.hub_id === hubId
  const wanted = isSameHub
    ? active.where(
        'id',
        'in',
        lines.map(({ product_id }) => product_id),
      )
    : active.where(
        'upc',
        'in',
        lines.map(({ upc }) => upc),
      )
  const targets = await wanted.execute()
  return lines.map((line) => ({
    ...line,
    targetId: targets.find(({ id, upc }) => (isSameHub ? id === line.product_id : upc === line.upc))?.id,
  }))
}

/** The number of units in a user's active order at a hub. Throws `hub_not_found`. */
export async function countItems(
  q: Queries,
  userId: number,
  hubId: number,
): Promise<{ count: number; order_id: number | null }> {
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
  const order = await activeOrder(q, userId, hubId)
  if (!order) return { count: 0, order_id: null }
  const { count } = await q
    .selectFrom('order_items')
    .select((eb) => eb.fn.sum<number | null>('qty').as('count'))
    .where('order_id', '=', order.id)
    .executeTakeFirstOrThrow()
  return { count: count ?? 0, order_id: order.id }
}
