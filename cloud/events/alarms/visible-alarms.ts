import { sql } from 'kysely'
import type { Queries } from '../../platform/store/database.ts'

/**
 * The alarms that a credential may see. An owner's key sees the alarms of its owner. A limited key, and an identity,
 * see the alarms of their hubs.
 */
export function visibleAlarms(
  q: Queries,
  { hubs, ownerId }: { hubs: '*' | readonly number[]; ownerId: number | null },
) {
  let query = q.selectFrom('alarms')
  if (ownerId !== null) query = query.where('owner_id', '=', ownerId)
  if (hubs !== '*') query = query.where('hub_id', 'in', hubs.length > 0 ? hubs : [sql.lit(0)])
  return query
}
