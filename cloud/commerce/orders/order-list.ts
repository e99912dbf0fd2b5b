import { sql } from 'kysely'
import type { OrderSort } from '../../../protocol/contract/consumer-orders.ts'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { OrderStatus, type OrderStatusName } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { viewOrders } from './order-view.ts'

export interface OrderListQuery {
  userId: number
  /** By number or name; of any where undefined. */
  statuses: readonly (OrderStatus | OrderStatusName)[] | undefined
  orderBy: OrderSort
  descending: boolean
  page: number
  size: number
}

export interface OrderPage {
  items: Order[]
  total: number
  page: number
  size: number
  pages: number
}

/** A page of a user's orders (C §4.2). Costs as much as the user has orders, however many all have. */
export async function listOrders(
  q: Queries,
  context: Pick<CloudContext, 'runtime' | 'settings'>,
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
    .offset((page - 1) * size)
    .execute()
  return { items: await viewOrders(q, context, rows), total, page, size, pages: Math.ceil(total / size) }
}

const sortKeys = {
  created_at: sql.ref('created_at'),
  updated_at: sql.ref('updated_at'),
  // The databases do not agree where null belongs.
  total: sql`coalesce(total, 0)`,
  processing_status: sql.ref('processing_status'),
  order_id: sql.ref('id'),
}
