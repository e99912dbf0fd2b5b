import { DAY_MS } from '../../protocol/model/times.ts'
import type { Erase, NextCell } from '../../protocol/mqtt/session.ts'
import type { Queries } from '../platform/store/database.ts'
import { isToErase } from './draining.ts'

/**
 * The orders of a move to another cell (SPEC §2). A hub in service gets `down/move` until it has answered. Its answer retires it
 * (`operations/ownership/next-cell.ts`). The order to erase its secrets then names its number in the other cell.
 */

/** A claim code is valid for a day by default. */
const ORDER_MS = DAY_MS

/** The hubs in service that must be ordered to move. An order ends after a day without an answer. */
export async function movesToOrder(q: Queries, now: number): Promise<{ hubId: number; next: NextCell }[]> {
  const rows = await q
    .selectFrom('hub_moves')
    .innerJoin('hubs', 'hubs.id', 'hub_moves.hub_id')
    .select(['hub_id', 'cloud', 'next_id', 'code', 'ordered_at'])
    .where('code', 'is not', null)
    .where('hubs.retired_at', 'is', null)
    .where('hubs.revoked_at', 'is', null)
    .execute()
  if (rows.some(({ ordered_at }) => ordered_at <= now - ORDER_MS))
    await q
      .updateTable('hub_moves')
      .set({ code: null, error: 'the hub did not answer within a day' })
      .where('code', 'is not', null)
      .where('ordered_at', '<=', now - ORDER_MS)
      .execute()
  return rows
    .filter(({ ordered_at }) => ordered_at > now - ORDER_MS)
    .map(({ hub_id, cloud, next_id, code, ordered_at }) => ({
      hubId: hub_id,
      next: { order: ordered_at, cloud, hub_id: next_id, code: code! },
    }))
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
