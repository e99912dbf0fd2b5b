import { sql } from 'kysely'
import type {
  LineProgress,
  OrderEntry,
  SnapshotEntry,
  State,
  StateEntry,
} from '../../../protocol/mqtt/hub-entries.ts'
import { OrderStatus, type OrderCause, type TransitionResult } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { earnPoints } from '../ledger/points.ts'
import { cancelOrder, endUndelivered, refundUndelivered } from '../refunds/undelivered.ts'
import { applySnapshot as applyStockSnapshot } from '../catalogue/apply-stock.ts'
import { applyShelfState, deleteShelfStates } from '../catalogue/units.ts'
import { renewVersions } from '../catalogue/apply-operations.ts'
import { checkBins } from '../orders/bin-room.ts'
import { ApplyError } from '../../gateway/domain.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { measurePace } from '../orders/queue-position.ts'
import { moveOrder, releaseReservations } from '../orders/move-order.ts'
import { lockOrderOfHub, type OrderRow } from '../orders/order-rows.ts'

/**
 * Applies a hub's report on an order and all its consequences in the transaction that moves the stream's
 * cursor (I4).
 *
 * - If the cloud has already ended the order (it considered the hub lost), only the drops are recorded. The
 *   status does not change.
 * - If the cloud does not know the order, the report is a dead letter. The order was sold after the backup
 *   from which the cloud was restored. Its id belongs to no second order.
 */
export async function applyOrderEntry(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: OrderEntry,
): Promise<void> {
  const order = await lockOrderOfHub(tx, hubId, entry.order_id)
  if (!order) throw new ApplyError(`hub ${hubId} ${noSuchOrder(entry.order_id)}`)
  const at = context.runtime.clock.now()
  switch (entry.kind) {
    case 'order.preparing':
      await advance(tx, context, order, 'hub_preparing', { bins: entry.bins, hub_began_at: entry.at })
      return
    case 'order.ready': {
      const isNews = await recordLines(tx, order, entry.lines)
      if (await advance(tx, context, order, 'hub_ready', { bins: entry.bins, ready_at: at })) {
        await applyReady(tx, context, order)
        await measurePace(
          tx,
          {
            hubId,
            beganAt: order.hub_began_at,
            readyAt: entry.at,
            units: entry.lines.reduce((sum, { dropped }) => sum + dropped, 0),
            longestMs: context.settings.prepareTimeoutMs,
          },
          at,
        )
      } else if (isNews) await renewVersions(tx, hubId, [order.id])
      return
    }
    case 'order.collecting':
      await advance(tx, context, order, 'hub_collecting')
      return
    case 'order.completed':
      if (await advance(tx, context, order, 'hub_completed')) await earnPoints(tx, context, order)
      return
    case 'order.cancelled':
      await cancelOrder(tx, context, order)
      return
    case 'order.timed_out':
    case 'order.failed': {
      const isNews = await recordLines(tx, order, entry.lines)
      const [cause, failure_reason] =
        entry.kind === 'order.failed'
          ? (['hub_failed', entry.reason] as const)
          : (['preparation_timeout', 'preparation_timeout'] as const)
      const step = await endUndelivered(tx, context, order, cause, { failure_reason, ...binsOf(entry) })
      warnOfIllegal(context, order, cause, step)
      if (isNews && step.kind !== 'moved') await renewVersions(tx, hubId, [order.id])
      return
    }
    case 'order.unclaimed':
      await advance(tx, context, order, 'unclaimed', { failure_reason: 'unclaimed' })
  }
}

/** The error of a report on an order that the database has lost, with the steps a person can take. */
const noSuchOrder = (uuid: string): string =>
  `has no order ${uuid} in this database, which was restored to a time before the order: replaying cannot succeed. ` +
  'Look for its payment (larder payments orphaned), refund or settle it, then drop this letter'

/** All available units are in the bins: releases the missing stock and refunds its money. */
async function applyReady(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  await releaseReservations(tx, order.id)
  await refundUndelivered(tx, context, order, 'short')
}

interface Changes {
  bins?: readonly number[]
  ready_at?: number
  hub_began_at?: number
  failure_reason?: string
}

/**
 * Statuses that precede a hub's report. A hub with a new store may report READY for an order that is QUEUED
 * here.
 */
const stationsBefore: Partial<Record<OrderCause, readonly OrderCause[]>> = {
  hub_ready: ['hub_preparing'],
  hub_collecting: ['hub_preparing', 'hub_ready'],
  hub_completed: ['hub_preparing', 'hub_ready'],
  unclaimed: ['hub_preparing', 'hub_ready'],
}

/** Moves an order, through preceding statuses if necessary. True if `cause` itself moved it. */
async function advance(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cause: OrderCause,
  { bins, ...changes }: Changes = {},
): Promise<boolean> {
  const now = context.runtime.clock.now()
  for (const station of stationsBefore[cause] ?? []) {
    const times = station === 'hub_preparing' ? { preparing_at: now } : { ready_at: now }
    const step = await moveOrder(tx, context, order, station, times)
    if (station === 'hub_ready' && step.kind === 'moved') await applyReady(tx, context, order)
  }
  const step = await moveOrder(tx, context, order, cause, {
    ...changes,
    ...(cause === 'hub_preparing' ? { preparing_at: now } : {}),
    ...binsOf({ bins }),
  })
  warnOfIllegal(context, order, cause, step)
  return step.kind === 'moved'
}

const binsOf = ({ bins }: { bins?: readonly number[] | undefined }): { bins?: string } =>
  bins && bins.length > 0 ? { bins: JSON.stringify(bins) } : {}

function warnOfIllegal(
  { log }: CloudContext,
  { id, processing_status: from }: OrderRow,
  cause: OrderCause,
  { kind }: TransitionResult,
): void {
  if (kind === 'illegal')
    log.warn({ orderId: id, from, cause }, 'the hub reports of an order that has ended here')
}

/**
 * Records the drops that a hub reports. From READY on, refunds depend on the count, so it never decreases: a
 * hub with a restored journal may have forgotten drops. True if the drops are new.
 */
async function recordLines(tx: Tx, order: OrderRow, lines: readonly LineProgress[]): Promise<boolean> {
  const least = order.processing_status >= OrderStatus.READY ? sql`order_items.qty_dropped` : sql.lit(0)
  // An order has no more units than were ordered. A hub that reports more is defective or stolen.
  const dropped = sql`case when r.dropped > order_items.qty then order_items.qty else r.dropped end`
  const rest = sql`order_items.qty - (${dropped})`
  const doubtful = sql`case when r.doubtful > ${rest} then ${rest} else r.doubtful end`
  const columns = { id: 'int', dropped: 'int', doubtful: 'int', bins: 'text' } as const
  const rows = lines.map(({ line_id: id, bins, ...counts }) => ({
    ...counts,
    id,
    bins: JSON.stringify(bins),
  }))
  const { numAffectedRows } = await sql`
    update order_items set qty_dropped = ${dropped}, qty_doubtful = ${doubtful}, bins = r.bins
    from ${recordset(tx.kind, columns, rows)}
    where order_items.id = r.id and order_items.order_id = ${order.id} and ${dropped} >= ${least}
      and (qty_dropped <> ${dropped} or qty_doubtful <> ${doubtful} or order_items.bins <> r.bins)`.execute(
    tx.q,
  )
  return numAffectedRows !== 0n
}

/**
 * Applies a hub's report on the state of a component. Units that the hub cannot dispense are not sold from
 * then on.
 */
export async function applyStateEntry(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { state }: StateEntry,
): Promise<void> {
  await applyState(tx, hubId, state)
  if (state.of === 'bin') checkBins(tx, context, hubId)
}

/** Applies a hub's complete snapshot, including its states. */
export async function applySnapshot(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: SnapshotEntry,
): Promise<void> {
  await applyStockSnapshot(tx, context, hubId, entry)
  await deleteShelfStates(tx, hubId)
  const unknown = { state: 'offline', order_uuid: null, fault: null } as const
  await tx.q.updateTable('hub_bins').set(unknown).where('hub_id', '=', hubId).execute()
  await tx.q.deleteFrom('hub_fridge_states').where('hub_id', '=', hubId).execute()
  for (const state of entry.states) await applyState(tx, hubId, state)
  checkBins(tx, context, hubId)
}

async function applyState(tx: Tx, hubId: number, state: State): Promise<void> {
  const since = Math.round(state.since)
  switch (state.of) {
    case 'row':
    case 'cabinet':
      return applyShelfState(tx, hubId, state)
    case 'bin': {
      const { bin, capacity, state: use, order_id: order_uuid, fault } = state
      const values = { capacity, state: use, order_uuid, fault, since }
      await tx.q
        .insertInto('hub_bins')
        .values({ hub_id: hubId, bin, ...values })
        .onConflict((conflict) => conflict.columns(['hub_id', 'bin']).doUpdateSet(values))
        .execute()
      return
    }
    case 'fridge': {
      const values = { state: state.state, since }
      await tx.q
        .insertInto('hub_fridge_states')
        .values({ hub_id: hubId, fridge: state.fridge, ...values })
        .onConflict((conflict) => conflict.columns(['hub_id', 'fridge']).doUpdateSet(values))
        .execute()
    }
  }
}
