import { sql } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Instant } from '../../platform/store/table.ts'
import { LAST_ACTIVE, type OrderRow } from './order-rows.ts'

interface QueuePlace {
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
  { runtime }: CloudContext,
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

/** Where a hub has dispensed nothing yet. */
export const TYPICAL_UNIT_MS = 15_000

/** The weight of the last order once there are enough of them; the first ones count alike. */
const WEIGHT = 0.1

/** How long a hub takes for a unit, in milliseconds. */
export async function hubPace(q: Queries, hubId: number): Promise<number> {
  const pace = await q
    .selectFrom('hub_paces')
    .select('unit_ms')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return pace?.unit_ms ?? TYPICAL_UNIT_MS
}

interface Prepared {
  hubId: number
  /** Both by the hub's own clock: the reports may arrive long after, and together. */
  beganAt: number | null
  readyAt: number
  units: number
  /** An order that took longer was held up by something else, or the clock was set meanwhile. */
  longestMs: number
}

/** Takes down how long an order took. */
export async function measurePace(tx: Tx, prepared: Prepared, now: Instant): Promise<void> {
  const { hubId, beganAt, readyAt, units, longestMs } = prepared
  const tookMs = beganAt === null ? 0 : readyAt - beganAt
  if (units <= 0 || tookMs <= 0 || tookMs > longestMs) return
  await tx.q
    .insertInto('hub_paces')
    .values({ hub_id: hubId, unit_ms: tookMs / units, samples: 1, updated_at: now })
    .onConflict((conflict) =>
      conflict.column('hub_id').doUpdateSet({
        unit_ms: sql`hub_paces.unit_ms + (excluded.unit_ms - hub_paces.unit_ms)
          * case when hub_paces.samples < ${sql.lit(1 / WEIGHT)} then 1.0 / (hub_paces.samples + 1) else ${sql.lit(WEIGHT)} end`,
        samples: sql`hub_paces.samples + 1`,
        updated_at: now,
      }),
    )
    .execute()
}
