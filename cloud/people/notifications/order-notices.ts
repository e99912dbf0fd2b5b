import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { LAST_ACTIVE, lockOrder, type OrderRow } from '../../commerce/orders/order-rows.ts'
import type { Queries } from '../../platform/store/database.ts'
import { putNotice, type NoticeKind } from './notice.ts'

const BATCH = 100

/** Carts with something in them that will expire soon (contract §5). Returns the orders whose customers are told. */
export async function noticeExpiringOrders(context: CloudContext): Promise<number[]> {
  const { db, runtime, settings } = context
  const now = runtime.clock.now()
  const before = now - settings.idleOrderMs + settings.expiringNoticeMs
  const orders = await untold(db.kysely, 'order_expiring', OrderStatus.NEW)
    .where('o.updated_at', '<=', before)
    .where((eb) =>
      eb.exists(eb.selectFrom('order_items as i').select('i.id').whereRef('i.order_id', '=', 'o.id')),
    )
    .orderBy('o.updated_at')
    .execute()
  return tell(
    context,
    'order_expiring',
    orders,
    (order) => order.processing_status === OrderStatus.NEW && order.updated_at <= before,
  )
}

/** Orders that wait in their bins for long. Returns the orders whose customers are told. */
export async function noticeUnclaimedOrders(context: CloudContext): Promise<number[]> {
  const { db, runtime, settings } = context
  const before = runtime.clock.now() - settings.unclaimedNoticeMs
  const orders = await untold(db.kysely, 'order_unclaimed', OrderStatus.READY)
    .where('o.ready_at', '<=', before)
    .orderBy('o.ready_at')
    .execute()
  return tell(context, 'order_unclaimed', orders, (order) => order.processing_status === OrderStatus.READY)
}

/** Orders in a status whose customers have not been told, so many at once. */
const untold = (q: Queries, kind: NoticeKind, status: OrderStatus) =>
  q
    .selectFrom('orders as o')
    .select('o.id')
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', '=', status)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('notifications as n')
            .select('n.id')
            .whereRef('n.order_id', '=', 'o.id')
            .where('n.kind', '=', kind),
        ),
      ),
    )
    .limit(BATCH)

async function tell(
  context: CloudContext,
  kind: NoticeKind,
  orders: readonly { id: number }[],
  isStillSo: (order: OrderRow) => boolean,
): Promise<number[]> {
  const told: number[] = []
  for (const { id } of orders)
    await context.db.transact(async (tx) => {
      const order = await lockOrder(tx, id)
      if (!order || !isStillSo(order)) return
      const notice = { kind, userId: order.user_id, orderId: id }
      if (!(await putNotice(tx, context.runtime.clock.now(), notice))) return
      tx.afterCommit(() => told.push(id))
    })
  return told
}
