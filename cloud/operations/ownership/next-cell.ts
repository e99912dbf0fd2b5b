import { hubUser } from '../../../protocol/mqtt/topics.ts'
import type { Moved, NextCell } from '../../../protocol/mqtt/session.ts'
import { startDraining, UNTIL_IT_LEFT_MS } from '../../gateway/draining.ts'
import { endMove, LEAVING } from '../../gateway/moves.ts'
import { clearAlarm, latestAlarm, raiseAlarm, type Incident } from '../../events/alarms/alarms.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { appliedState } from '../hubs/desired.ts'
import { inFlight, lockHub, ordersInFlight, retireHub } from './hand-over.ts'
import { digestOfEntry, readEntry } from './hub-entry.ts'

/**
 * A hub moves to another cell. The order comes first (`orderMove`): the hub stays in service here until it is enrolled there.
 * Only its answer retires it (`noteMoved`). A refusal or failure ends the order and changes nothing else; the operator repeats it.
 */

/** An order to move. `digest`: of the export that the other cell has imported. */
export type MoveOrder = Omit<NextCell, 'order'> & { digest: string }

/** Stores the order to move. Throws a sentence if the hub cannot move now. */
export async function orderMove(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { cloud, hub_id: nextId, code, digest }: MoveOrder,
): Promise<void> {
  await requireReady(tx, hubId, { nextId, digest })
  const { runtime, sealer } = context
  const sealed = sealer.seal('next claim code', code)
  const former = await tx.q
    .selectFrom('hub_moves')
    .select('ordered_at')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  // The time is also the number of the order, and the hub ignores a lower one. The clock may have stepped back.
  const ordered_at = Math.max(runtime.clock.now(), (former?.ordered_at ?? 0) + 1)
  const order = { cloud, next_id: nextId, code: sealed, ordered_at, error: null }
  await tx.q
    .insertInto('hub_moves')
    .values({ hub_id: hubId, ...order, moved_at: null })
    .onConflict((conflict) => conflict.column('hub_id').doUpdateSet(order))
    .execute()
  await clearAlarm(tx, context, moveFailure(hubId))
  await schedule(tx, LEAVING, hubId, runtime.clock.now() + LEAVE_MS)
}

export const moveFailure = (hubId: number): Incident<'move_failed'> => ({
  hubId,
  kind: 'move_failed',
  subject: null,
})

/** Withdraws an order that the hub has not answered. A retired hub leaves nevertheless. Returns whether there was an order. */
export async function withdrawMove(tx: Tx, hubId: number): Promise<boolean> {
  await lockHub(tx, hubId)
  return endMove(tx.q, hubId, 'withdrawn')
}

/** Throws if the cloud knows a reason against the move. The hub judges its own state when it gets the order (`edge/core/leaving.ts`). */
async function requireReady(
  tx: Tx,
  hubId: number,
  { nextId, digest }: { nextId: number; digest: string },
): Promise<void> {
  await lockHub(tx, hubId)
  const hub = await tx.q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(['hubs.retired_at', 'hubs.revoked_at', 'hub_sessions.session', 'hub_sessions.can_move'])
    .where('hubs.id', '=', hubId)
    .executeTakeFirstOrThrow()
  if (nextId === hubId) throw new Error(`--as is the number in the other cell, not ${hubId}`)
  const move = await shownMove(tx.q, hubId)
  // It enrols there again: its certificate there may have expired, or that hub may have been retired and imported again. The order
  // to leave now names the new number, and the board stays until it is enrolled with it.
  if (move?.state === 'leaving') return
  if (hub.retired_at !== null || hub.revoked_at !== null)
    throw new Error(`hub ${hubId} is retired or revoked: enrol its board in the other cell by hand`)
  if (hub.session === null)
    throw new Error(`no board has ever been hub ${hubId}: enrol one in the other cell by hand`)
  if (hub.can_move !== 1)
    throw new Error(
      `the board of hub ${hubId} cannot move by itself: its version is too old, or its own configuration has MQTT_PASSWORD or MQTT_URL. Change that, or retire the hub and enrol the board in the other cell by hand`,
    )
  const why = (await reasonToStay(tx, hubId)) ?? (await changeSinceExport(tx, hubId, digest))
  if (why !== undefined) throw new Error(why)
}

/** Why a hub must stay in service here now, as far as the cloud knows. */
export async function reasonToStay(tx: Tx, hubId: number): Promise<string | undefined> {
  const { hub_status, desired_version } = await tx.q
    .selectFrom('hubs')
    .select(['hub_status', 'desired_version'])
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  if (hub_status !== 'maintenance')
    return `hub ${hubId} takes orders: first run larder hubs set ${hubId} --maintenance on, then export`
  const orders = await ordersInFlight(tx, hubId)
  if (orders.length > 0) return inFlight(hubId, orders, 'wait for their end').message
  const count = await tx.q
    .selectFrom('stock_counts')
    .select('count_id')
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .executeTakeFirst()
  if (count) return `hub ${hubId} has not confirmed a count of its stock yet: wait until it is online`
  // A description that the board has not tried would be its own in the other cell.
  const { apply_state } = await appliedState(tx.q, hubId, desired_version)
  return apply_state === 'applied'
    ? undefined
    : `hub ${hubId} does not use its settings and hardware description of the cloud (apply_state: ${apply_state}): wait, or correct them with larder hubs set ${hubId}`
}

/** The reason if the hub or its products have changed since its last export, or if the other cell has `imported` another one. */
async function changeSinceExport({ q }: Tx, hubId: number, imported?: string): Promise<string | undefined> {
  const exported = await q
    .selectFrom('hub_exports')
    .select('digest')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  if (!exported) return `hub ${hubId} was not exported: larder owners export and import come first`
  if (imported !== undefined && imported !== exported.digest)
    return `--export is not the last export of hub ${hubId}: import the file of the last export there, and use the command that it prints`
  return digestOfEntry(await readEntry(q, hubId)) === exported.digest
    ? undefined
    : `hub ${hubId} has changed since its export: export and import again`
}

/**
 * The hub's answer. A hub that is enrolled in the other cell is retired here, and keeps its login until it has left. An answer to
 * a withdrawn order changes nothing: the hub leaves only on a further order. `actor`: `cloud` if the hub has not answered.
 */
export const noteMoved = (
  context: CloudContext,
  hubId: number,
  { order, hub_id: nextId, error }: Moved,
  actor = hubUser(hubId),
): Promise<void> =>
  context.db.transact(async (tx) => {
    const { runtime } = context
    const hub = await lockHub(tx, hubId)
    if (hub.revoked_at !== null) return
    if (hub.retired_at !== null)
      return noteAnswerOfRetired(tx, context, hubId, { order, hub_id: nextId, error })
    const move = await tx.q
      .selectFrom('hub_moves')
      .select('cloud')
      .where('hub_id', '=', hubId)
      .where('code', 'is not', null)
      .where('ordered_at', '=', order)
      .where('next_id', '=', nextId)
      .executeTakeFirst()
    if (!move) return
    const why = error ?? (await reasonToStay(tx, hubId)) ?? (await changeSinceExport(tx, hubId))
    const now = runtime.clock.now()
    const answered = { code: null, error: why ?? null, moved_at: why === undefined ? now : null }
    const { numUpdatedRows } = await tx.q
      .updateTable('hub_moves')
      .set(answered)
      .where('hub_id', '=', hubId)
      .where('code', 'is not', null)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return
    if (why !== undefined) {
      const details = { to: move.cloud, as: nextId, error: why }
      await raiseAlarm(tx, context, { ...moveFailure(hubId), detail: why, details, refreshes: true })
    } else {
      await retireHub(tx, context, { hubId, force: false, actor })
      await startDraining(tx, hubId, now + UNTIL_IT_LEFT_MS)
      await schedule(tx, LEAVING, hubId, now + LEAVE_MS)
    }
    await appendAudit(tx.q, runtime, {
      actor,
      action: 'hubs.leave',
      hubId,
      object: hubUser(hubId),
      result: why === undefined ? 'executed' : 'failed',
      detail: { to: move.cloud, as: nextId, ...(why !== undefined && { error: why }) },
    })
  })

/** Usually a hub leaves within seconds. */
const LEAVE_MS = 600_000

/** A retired hub reports at each order to leave why it cannot leave yet (`order` 0), and answers an order to enrol there again. */
async function noteAnswerOfRetired(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { order, hub_id: nextId, error }: Moved,
): Promise<void> {
  const moves = tx.q
    .updateTable('hub_moves')
    .where('hub_id', '=', hubId)
    .where('next_id', '=', nextId)
    .where('moved_at', 'is not', null)
  await moves.set({ error: error ?? null }).execute()
  await moves.set({ code: null }).where('ordered_at', '=', order).execute()
  const alarm = await latestAlarm(tx, moveFailure(hubId))
  if (alarm?.endedAt === null) await alarmWaiting(tx, context, hubId)
}

/**
 * Raises the alarm of a retired hub that has not left: it is closed in both cells, and its silence raises no alarm. Ends that of a
 * revoked board.
 */
async function alarmWaiting(tx: Tx, context: CloudContext, hubId: number): Promise<void> {
  const { owner_id: soldBy, revoked_at } = await lockHub(tx, hubId)
  if (revoked_at !== null) return clearAlarm(tx, context, moveFailure(hubId))
  const move = await shownMove(tx.q, hubId)
  if (move?.state !== 'leaving') return
  const detail = move.error ?? 'it has not reported why: check its power and its internet connection'
  await raiseAlarm(tx, context, {
    ...moveFailure(hubId),
    soldBy,
    what: 'moves to another installation and has not left this one, so it is closed in both',
    detail,
    details: { to: move.address, as: move.hub_id, error: detail },
    refreshes: true,
  })
}

export const leavingWork = (context: CloudContext): WorkKinds => ({
  [LEAVING]: {
    async run({ subject }) {
      await context.db.transact((tx) => alarmWaiting(tx, context, Number(subject)))
      return done
    },
  },
})

/** The last move of a hub, as `larder hubs show` prints it. */
export async function shownMove(q: Queries, hubId: number) {
  const move = await q
    .selectFrom('hub_moves')
    .innerJoin('hubs', 'hubs.id', 'hub_moves.hub_id')
    .selectAll('hub_moves')
    .select(['hubs.revoked_at', 'hubs.secrets_erased_at'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  if (!move) return null
  return { address: move.cloud, hub_id: move.next_id, ...stateOf(move) }
}

function stateOf(move: {
  code: string | null
  error: string | null
  moved_at: number | null
  revoked_at: number | null
  secrets_erased_at: number | null
}): { state: 'ordered' | 'failed' | 'leaving' | 'moved'; error: string | null } {
  const { code, error, moved_at, revoked_at, secrets_erased_at } = move
  if (moved_at === null) return { state: code !== null ? 'ordered' : 'failed', error }
  // A revoked board erases its secrets, too, and goes nowhere.
  if (revoked_at !== null && revoked_at <= (secrets_erased_at ?? Infinity))
    return { state: 'failed', error: 'the board was revoked' }
  return secrets_erased_at === null ? { state: 'leaving', error } : { state: 'moved', error: null }
}
