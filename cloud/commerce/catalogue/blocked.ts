import { sql, type RawBuilder } from 'kysely'
import type { State } from '../../../protocol/mqtt/hub-entries.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readFridges } from './layout.ts'

/**
 * Places from which nothing is sold although they may have stock. The owner blocks them (a disabled fridge), or the hub
 * does: a row is blocked, a cabinet's controller is silent, a fridge was too warm.
 */

/** Stands for every shelf and row of a cabinet. */
export const WHOLE = { shelf: 0, row: 0 } as const

/** Whether a place is blocked: an expression over a row of a table with columns for a hub and a place. */
export function isBlocked(table: 'facings' | 'unknown_operations'): RawBuilder<boolean> {
  const place = sql.table(table)
  return sql<boolean>`exists (
    select 1 from blocked_places where blocked_places.hub_id = ${place}.hub_id and blocked_places.cabinet = ${place}.cabinet
      and ((blocked_places.shelf = ${place}.shelf and blocked_places."row" = ${place}."row")
        or blocked_places.shelf = ${sql.lit(WHOLE.shelf)}))`
}

/** Records the blocked cabinets for the disabled fridges. */
export async function blockDisabled(
  tx: Tx,
  hubId: number,
  disabledFridges: readonly number[],
  now: number,
): Promise<void> {
  const disabled = (await readFridges(tx.q, hubId)).filter(({ fridge }) => disabledFridges.includes(fridge))
  const cabinets = new Set(disabled.flatMap(({ left, middle, right }) => [left, middle, right]))
  const known = await tx.q
    .deleteFrom('blocked_places')
    .where('hub_id', '=', hubId)
    .where('source', '=', 'owner')
    .returning(['cabinet', 'since'])
    .execute()
  const since = new Map(known.map((row) => [row.cabinet, row.since]))
  if (cabinets.size > 0)
    await tx.q
      .insertInto('blocked_places')
      .values(
        [...cabinets].map((cabinet) => ({
          hub_id: hubId,
          source: 'owner' as const,
          cabinet,
          ...WHOLE,
          reason: 'disabled',
          since: since.get(cabinet) ?? now,
        })),
      )
      .execute()
}

/** Records a hub's state of a row or a cabinet. */
export async function applyShelfState(
  tx: Tx,
  hubId: number,
  state: Extract<State, { of: 'row' | 'cabinet' }>,
): Promise<void> {
  const place = state.of === 'row' ? state.location : { cabinet: state.cabinet, ...WHOLE }
  const reason = state.of === 'row' ? state.blocked : state.withheld
  await tx.q
    .deleteFrom('blocked_places')
    .where('source', '=', 'hub')
    .where((eb) => eb.and({ hub_id: hubId, ...place }))
    .execute()
  if (reason !== null)
    await tx.q
      .insertInto('blocked_places')
      .values({ hub_id: hubId, source: 'hub', ...place, reason, since: Math.round(state.since) })
      .execute()
}

/** Deletes the states of a hub's rows and cabinets. */
export async function deleteShelfStates(tx: Tx, hubId: number): Promise<void> {
  await tx.q.deleteFrom('blocked_places').where('hub_id', '=', hubId).where('source', '=', 'hub').execute()
}
