import { sql } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'
import type { Instant } from '../../platform/store/table.ts'
import { furtherBins, ordersWithUnits, type BinRoom } from './bin-room.ts'
import { hubIntake } from './intake.ts'
import { isAtHub, LAST_ACTIVE, type OrderRow } from './order-rows.ts'

export interface QueuePlace {
  /** 1 is next; null for an order that does not wait. */
  position: number | null
  /** Orders that the hub serves first, including those in progress. */
  ahead: number
}

/** An order that a hub must dispense, with its number of missing units. */
export interface QueuedUnits {
  id: number
  processing_status: OrderStatus
  reserved_bin: number | null
  queued_at: number | null
  preparing_at: number | null
  units: number
}

const NOWHERE: QueuePlace = { position: null, ahead: 0 }

/** The position of an order in its hub's queue. */
export async function queuePlace(q: Queries, order: OrderRow): Promise<QueuePlace> {
  return isAtHub(order) ? placeIn(await readQueue(q, order.hub_id), order.id) : NOWHERE
}

/**
 * The same, with the estimated seconds until the order is ready, from the hub's pace and its bins. Null if it cannot be
 * estimated: the hub is silent, or the order waits for a bin that a person must empty first.
 */
export async function queueEstimate(
  q: Queries,
  context: CloudContext,
  order: OrderRow,
): Promise<QueuePlace & { estimatedWaitSeconds: number | null }> {
  if (!isAtHub(order)) return { ...NOWHERE, estimatedWaitSeconds: null }
  const queue = await readQueue(q, order.hub_id)
  const { refusal, bins } = await hubIntake(q, context, order.hub_id)
  const terms = { unitMs: await hubPace(q, order.hub_id), now: context.runtime.clock.now(), bins }
  const isSilent = refusal === 'hub_offline'
  return {
    ...placeIn(queue, order.id),
    estimatedWaitSeconds: isSilent ? null : estimateIn(queue, order.id, terms),
  }
}

/** The position of one order in its hub's queue. */
export function placeIn(queue: readonly QueuedUnits[], orderId: number): QueuePlace {
  const sorted = inOrder(queue)
  const index = sorted.findIndex(({ id }) => id === orderId)
  const own = sorted[index]
  if (!own) return NOWHERE
  if (own.processing_status === OrderStatus.PREPARING) return { position: null, ahead: 0 }
  return { position: index + 1, ahead: index }
}

interface Terms {
  /** How long the hub takes for one unit. */
  unitMs: number
  now: number
  bins: BinRoom
}

/**
 * The hub dispenses as many orders in parallel as it has empty bins. An order with free bins takes as long as its own
 * units. Orders in progress are already partly done.
 */
export function estimateIn(
  queue: readonly QueuedUnits[],
  orderId: number,
  { unitMs, now, bins }: Terms,
): number | null {
  const sorted = inOrder(queue)
  const index = sorted.findIndex(({ id }) => id === orderId)
  const own = sorted[index]
  if (!own) return null
  const inSeconds = (ms: number): number => Math.ceil(ms / 1000)
  if (own.processing_status === OrderStatus.PREPARING)
    return inSeconds(Math.max(unitMs, own.units * unitMs - (now - (own.preparing_at ?? now))))
  const needed = sorted
    .slice(0, index + 1)
    .filter(({ processing_status }) => processing_status === OrderStatus.QUEUED)
    .reduce((sum, order) => sum + furtherBins(bins.capacities, order), 0)
  return needed <= bins.empty ? inSeconds(own.units * unitMs) : null
}

/** Orders in progress first, then in the order of arrival. */
const inOrder = (queue: readonly QueuedUnits[]): QueuedUnits[] =>
  queue.toSorted(
    (a, b) =>
      b.processing_status - a.processing_status || (a.queued_at ?? 0) - (b.queued_at ?? 0) || a.id - b.id,
  )

const readQueue = (q: Queries, hubId: number): Promise<QueuedUnits[]> => queueOfHub(q, { hubId })

const queueOfHub = statement((q, { hubId }: { hubId: number }) =>
  ordersWithUnits(q)
    .where('o.hub_id', '=', hubId)
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', 'in', [sql.lit(OrderStatus.QUEUED), sql.lit(OrderStatus.PREPARING)])
    .groupBy(['o.queued_at', 'o.preparing_at'])
    .select(['o.queued_at', 'o.preparing_at']),
)

/** The pace of a hub that has not dispensed anything yet. */
export const TYPICAL_UNIT_MS = 15_000

/** The weight of the latest order after enough orders; the first ones count equally. */
const WEIGHT = 0.1

/** How long a hub takes for one unit, in milliseconds. */
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
  /** Both by the hub's own clock, because the reports may arrive long after and together. */
  beganAt: number | null
  readyAt: number
  units: number
  /** A longer order was delayed by another cause, or the clock was corrected in the meantime. */
  longestMs: number
}

/** Records the duration of an order. */
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
