import { sql } from 'kysely'
import type { Queries } from '../../platform/store/database.ts'

/** Which alarms a credential sees: those of its owner; one that is limited to hubs, or that is nobody's key, of its hubs. */
export function visibleAlarms(
  q: Queries,
  { hubs, ownerId }: { hubs: '*' | readonly number[]; ownerId: number | null },
) {
  let query = q.selectFrom('alarms')
  if (ownerId !== null) query = query.where('owner_id', '=', ownerId)
  if (hubs !== '*') query = query.where('hub_id', 'in', hubs.length > 0 ? hubs : [sql.lit(0)])
  return query
}
