import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { hubPace } from './hub-pace.ts'
import { LAST_ACTIVE, type OrderRow } from './order-rows.ts'

export interface QueuePlace {
  /** 1 is next; null for an order that does not wait. */
  position: number | null
  /** Orders that the hub serves before it, the one in hand included. */
  ahead: number
  /** Until it can be taken; null for an order that is not under way at a hub. */
  estimatedWaitSeconds: number | null
}

/** An order that a hub has to dispense, and how many units of it are missing. */
export interface QueuedUnits {
  id: number
  processing_status: OrderStatus
  queued_at: number | null
  preparing_at: number | null
  units: number
}

const NOWHERE: QueuePlace = { position: null, ahead: 0, estimatedWaitSeconds: null }

/** An order's place in its hub's queue, and how long it takes at the pace of that hub. */
export async function queuePlace(
  q: Queries,
  { runtime }: Pick<CloudContext, 'runtime'>,
  order: OrderRow,
): Promise<QueuePlace> {
  if (!isWaiting(order.processing_status)) return NOWHERE
  const queue = await readQueue(q, order.hub_id)
  return placeIn(queue, order.id, await hubPace(q, order.hub_id), runtime.clock.now())
}

/** The place of one order in a queue of its hub, at `unitMs` a unit. What is in hand has been worked on for a while. */
export function placeIn(
  queue: readonly QueuedUnits[],
  orderId: number,
  unitMs: number,
  now: number,
): QueuePlace {
  const sorted = queue.toSorted(
    (a, b) =>
      b.processing_status - a.processing_status || (a.queued_at ?? 0) - (b.queued_at ?? 0) || a.id - b.id,
  )
  const index = sorted.findIndex(({ id }) => id === orderId)
  const own = sorted[index]
  if (!own) return NOWHERE
  const left = ({ units, preparing_at }: QueuedUnits): number =>
    preparing_at === null ? units * unitMs : Math.max(unitMs, units * unitMs - (now - preparing_at))
  const runsAtOnce = own.processing_status === OrderStatus.PREPARING
  const before = runsAtOnce ? [] : sorted.slice(0, index)
  const waitMs = [...before, own].reduce((sum, order) => sum + left(order), 0)
  return {
    position: runsAtOnce ? null : before.length + 1,
    ahead: before.length,
    estimatedWaitSeconds: Math.ceil(waitMs / 1000),
  }
}

const isWaiting = (status: OrderStatus): boolean =>
  status === OrderStatus.QUEUED || status === OrderStatus.PREPARING

function readQueue(q: Queries, hubId: number): Promise<QueuedUnits[]> {
  return q
    .selectFrom('orders as o')
    .innerJoin('order_items as i', 'i.order_id', 'o.id')
    .where('o.hub_id', '=', hubId)
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', 'in', [OrderStatus.QUEUED, OrderStatus.PREPARING])
    .groupBy(['o.id', 'o.processing_status', 'o.queued_at', 'o.preparing_at'])
    .select((eb) => [
      'o.id',
      'o.processing_status',
      'o.queued_at',
      'o.preparing_at',
      eb.fn.sum<number>('i.qty').as('units'),
    ])
    .execute()
}
