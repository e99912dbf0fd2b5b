import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { Queries } from '../store/database.ts'
import type { OrderRow } from './order-rows.ts'

export interface QueuePlace {
  /** 1 is next; null for an order that does not wait. */
  position: number | null
  /** Orders that the hub serves before it, the one in hand included. */
  ahead: number
  estimatedWaitSeconds: number | null
}

const RECENT_ORDERS = 20
/** Where a hub has no history yet. */
const TYPICAL_PREPARATION_MS = 45_000

/** An order's place in its hub's queue. The wait is reckoned from how long the hub's last orders took. */
export async function queuePlace(q: Queries, order: OrderRow): Promise<QueuePlace> {
  if (order.processing_status !== OrderStatus.QUEUED)
    return { position: null, ahead: 0, estimatedWaitSeconds: null }
  const before = await q
    .selectFrom('orders')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', order.hub_id)
    .where((eb) =>
      eb.or([
        eb('processing_status', '=', OrderStatus.PREPARING),
        eb.and([
          eb('processing_status', '=', OrderStatus.QUEUED),
          eb.or([
            eb('queued_at', '<', order.queued_at),
            eb.and([eb('queued_at', '=', order.queued_at), eb('id', '<', order.id)]),
          ]),
        ]),
      ]),
    )
    .executeTakeFirstOrThrow()
  const typicalMs = await typicalPreparation(q, order.hub_id)
  return {
    position: before.count + 1,
    ahead: before.count,
    estimatedWaitSeconds: Math.ceil((before.count * typicalMs) / 1000),
  }
}

async function typicalPreparation(q: Queries, hubId: number): Promise<number> {
  const recent = await q
    .selectFrom('orders')
    .select(['preparing_at', 'ready_at'])
    .where('hub_id', '=', hubId)
    .where('processing_status', '=', OrderStatus.COMPLETED)
    .orderBy('id', 'desc')
    .limit(RECENT_ORDERS)
    .execute()
  const times = recent.flatMap(({ preparing_at, ready_at }) =>
    preparing_at === null || ready_at === null ? [] : [ready_at - preparing_at],
  )
  if (times.length === 0) return TYPICAL_PREPARATION_MS
  return times.reduce((total, time) => total + time, 0) / times.length
}
