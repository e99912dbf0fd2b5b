import { sql, type Selectable } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesBook } from '../../platform/credentials/hub-access.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, statement } from '../../platform/store/statement.ts'

export type OrderRow = Selectable<Tables['orders']>
export type ItemRow = Selectable<Tables['order_items']>

/** The columns that a checkout freezes, with their values in a cart. */
export const unfrozenOrder = {
  owner_id: null,
  total_price_original: null,
  total_price_discounted: null,
  tax_total: null,
  total: null,
  tax_millipercent: null,
  deals: null,
  reserved_bin: null,
  open_when_ready: 0,
  bins: '[]',
} as const

/** The same for each line. */
export const unfrozenLine = {
  upc: null,
  name: null,
  category: null,
  sold_name_id: null,
  image_url: null,
  unit_price_original: null,
  unit_price: null,
  purchase_price: null,
  net: null,
  tax: null,
} as const

/**
 * For `processing_status <= LAST_ACTIVE`. A literal, because with a parameter the databases would not use the indexes
 * of active orders.
 */
export const LAST_ACTIVE = sql.lit(OrderStatus.COLLECTING)

/**
 * An order, locked until the end of the transaction. Every change of an order, its payments or refunds begins with
 * this.
 */
export async function lockOrder(tx: Tx, orderId: number): Promise<OrderRow | undefined> {
  const [order] = await lockById(tx.q, { orderId })
  return order
}

const lockById = statement((q, { orderId }: { orderId: number }, locks) =>
  locks.forUpdate(q.selectFrom('orders').select(allOf('orders')).where('id', '=', orderId)),
)

/**
 * Locks an order again after a call to a hub or processor. Throws `order_not_found`: its customer may have deleted it
 * in the meantime, or a restored database does not have it.
 */
export async function lockOrderAgain(tx: Tx, orderId: number): Promise<OrderRow> {
  const order = await lockOrder(tx, orderId)
  if (!order) throw new ApiError('order_not_found')
  return order
}

/** The same by the order's id at its hub. */
export async function lockOrderOfHub(tx: Tx, hubId: number, uuid: string): Promise<OrderRow | undefined> {
  const [order] = await lockByUuid(tx.q, { hubId, uuid })
  return order
}

const lockByUuid = statement((q, { hubId, uuid }: { hubId: number; uuid: string }, locks) =>
  locks.forUpdate(
    q.selectFrom('orders').select(allOf('orders')).where('uuid', '=', uuid).where('hub_id', '=', hubId),
  ),
)

/**
 * Why an order that is not a cart cannot be paid or edited: it is paid, or it expired or was deleted before its
 * payment.
 */
export const stateObstacle = ({ queued_at }: OrderRow): 'order_already_paid' | 'order_not_editable' =>
  queued_at === null ? 'order_not_editable' : 'order_already_paid'

/** Throws `order_already_paid` or `order_not_editable` if the order is not a cart. */
export function requireCart(order: OrderRow): void {
  if (order.processing_status !== OrderStatus.NEW) throw new ApiError(stateObstacle(order))
}

/** Whether the hub still has to dispense the order: it waits there, or is in progress. */
export const isAtHub = ({ processing_status: status }: OrderRow): boolean =>
  status === OrderStatus.QUEUED || status === OrderStatus.PREPARING

/** The order of a user. Handlers return 404, not 403, if the order belongs to another user. */
export interface OrderKey {
  orderId: number
  userId: number
  hubId?: number | undefined
}

export async function lockOwnOrder(tx: Tx, key: OrderKey): Promise<OrderRow> {
  return requireOwn(await lockOrder(tx, key.orderId), key)
}

export async function readOwnOrder(q: Queries, key: OrderKey): Promise<OrderRow> {
  const [order] = await orderById(q, key)
  return requireOwn(order, key)
}

const orderById = statement((q, { orderId }: Pick<OrderKey, 'orderId'>) =>
  q.selectFrom('orders').select(allOf('orders')).where('id', '=', orderId),
)

function requireOwn(order: OrderRow | undefined, { userId, hubId }: OrderKey): OrderRow {
  if (!order || order.user_id !== userId || (hubId !== undefined && order.hub_id !== hubId))
    throw new ApiError('order_not_found')
  return order
}

/**
 * The owner of a payment or refund: the order's owner at the sale. An order that was never sold has none: then the
 * owner at the checkout of the payment.
 */
export const ownerOfMoney = ({ owner_id }: Pick<OrderRow, 'owner_id'>, money: { owner_id: number }): number =>
  owner_id ?? money.owner_id

/**
 * The owners of an order and its money. Empty for a cart without money: carts are private to their customers. An order
 * that was never sold may have late money of several owners.
 */
export async function ownersOf(
  q: Queries,
  { id, owner_id }: Pick<OrderRow, 'id' | 'owner_id'>,
): Promise<number[]> {
  if (owner_id !== null) return [owner_id]
  const late = await q
    .selectFrom('payments')
    .select('owner_id')
    .distinct()
    .where('order_id', '=', id)
    .where('status', '=', 'completed')
    .execute()
  return late.map((payment) => payment.owner_id)
}

/** An order with money of the credential's owner. Throws `order_not_found`. */
export async function requireOrderOf(
  q: Queries,
  credential: OwnerCredential,
  orderId: number,
): Promise<OrderRow> {
  const order = await q.selectFrom('orders').selectAll().where('id', '=', orderId).executeTakeFirst()
  const owners = order ? await ownersOf(q, order) : []
  if (!order || !(await reachesBook(q, credential, { hubId: order.hub_id, owners })))
    throw new ApiError('order_not_found')
  return order
}

/** An order's lines, oldest first, locked. */
export const lockItems = (tx: Tx, orderId: number): Promise<ItemRow[]> => itemsToLock(tx.q, { orderId })

const itemsToLock = statement((q, { orderId }: { orderId: number }, locks) =>
  locks.forUpdate(
    q.selectFrom('order_items').select(allOf('order_items')).where('order_id', '=', orderId).orderBy('id'),
  ),
)

/** Parses a column with a list of bin numbers. */
export const parseBins = (text: string): number[] => JSON.parse(text) as number[]
