import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'
import { activeOrder } from './cart.ts'

/** How many units a user's active order at a hub has. Throws `hub_not_found`. */
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
