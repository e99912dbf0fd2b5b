import { DAY_MS } from '../../protocol/model/times.ts'
import type { Erase, NextCell } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { isolated } from '../platform/work/background.ts'
import type { HubDomain } from './domain.ts'
import { isToErase } from './draining.ts'

/**
 * The orders of a move to another cell (SPEC §2). A hub gets `down/move` until it has answered. Its answer retires it
 * (`operations/ownership/next-cell.ts`). The order to erase its secrets then names its number in the other cell. A retired hub
 * that has not left gets `down/move` again if the operator orders it with another claim code.
 */

/** Due work: a retired hub may not have left for its cell yet (`operations/ownership/next-cell.ts`). */
export const LEAVING = 'hub.leaving'

/** A claim code is valid for a day by default. */
const ORDER_MS = DAY_MS

/** The hubs that must be ordered to move: they are in service, or have not left yet. */
export async function movesToOrder({
  db,
  runtime,
  sealer,
}: CloudContext): Promise<{ hubId: number; next: NextCell }[]> {
  const q = db.kysely
  const isOld = runtime.clock.now() - ORDER_MS
  const rows = await q
    .selectFrom('hub_moves')
    .innerJoin('hubs', 'hubs.id', 'hub_moves.hub_id')
    .selectAll('hub_moves')
    .select(['hubs.retired_at', 'hubs.revoked_at'])
    .where('code', 'is not', null)
    .execute()
  return rows
    .filter(
      ({ ordered_at, revoked_at, retired_at, moved_at }) =>
        ordered_at > isOld && revoked_at === null && (retired_at === null || moved_at !== null),
    )
    .map(({ hub_id, cloud, next_id, code, ordered_at }) => ({
      hubId: hub_id,
      next: { order: ordered_at, cloud, hub_id: next_id, code: sealer.open('next claim code', code!) },
    }))
}

const NO_ANSWER = 'the hub did not answer within a day'

/** Ends orders without an answer after a day. The cloud answers for a hub in service. */
export async function endOldMoves(context: CloudContext, domain: Pick<HubDomain, 'hubMoved'>): Promise<void> {
  const { db, runtime } = context
  const q = db.kysely
  const isOld = runtime.clock.now() - ORDER_MS
  const rows = await q
    .selectFrom('hub_moves')
    .innerJoin('hubs', 'hubs.id', 'hub_moves.hub_id')
    .select(['hub_id', 'next_id', 'ordered_at', 'hubs.retired_at', 'hubs.revoked_at'])
    .where('code', 'is not', null)
    .where('ordered_at', '<=', isOld)
    .execute()
  for (const { hub_id, next_id, ordered_at, retired_at, revoked_at } of rows)
    if (retired_at !== null || revoked_at !== null) await endMove(q, hub_id, NO_ANSWER, isOld)
    else
      await isolated(context, 'move of a hub', () =>
        domain.hubMoved(context, hub_id, { order: ordered_at, hub_id: next_id, error: NO_ANSWER }, 'cloud'),
      )
}

/**
 * Ends the open order to move of a hub, if it is not later than `latest`. A retired hub still leaves, so its reason to wait stays.
 * Returns whether there was an order.
 */
export async function endMove(q: Queries, hubId: number, error: string, latest?: number): Promise<boolean> {
  const { numUpdatedRows } = await q
    .updateTable('hub_moves')
    .set((eb) => ({
      code: null,
      error: eb.case().when('moved_at', 'is', null).then(error).else(eb.ref('error')).end(),
    }))
    .where('hub_id', '=', hubId)
    .where('code', 'is not', null)
    .$if(latest !== undefined, (query) => query.where('ordered_at', '<=', latest!))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Throws a sentence if a hub has an open order to move. The caller has locked the hub. */
export async function requireNoMove({ q }: Tx, hubId: number): Promise<void> {
  const move = await q
    .selectFrom('hub_moves')
    .select('cloud')
    .where('hub_id', '=', hubId)
    .where('code', 'is not', null)
    .executeTakeFirst()
  if (move)
    throw new Error(
      `hub ${hubId} has an order to move to ${move.cloud}: first withdraw it with larder hubs send ${hubId} --withdraw`,
    )
}

/** The order for a board that may still have secrets of a retired or revoked hub. */
export async function eraseOrder(q: Queries, hubId: number): Promise<Erase | undefined> {
  const hub = await q
    .selectFrom('hubs')
    .leftJoin('hub_moves', 'hub_moves.hub_id', 'hubs.id')
    .select(['hubs.revoked_at', 'hub_moves.moved_at', 'hub_moves.next_id'])
    .where('hubs.id', '=', hubId)
    .where(isToErase)
    .executeTakeFirst()
  if (!hub) return undefined
  return hub.moved_at !== null && hub.next_id !== null && hub.revoked_at === null ? { next: hub.next_id } : {}
}
