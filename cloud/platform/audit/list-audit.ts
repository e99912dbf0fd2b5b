import { sql } from 'kysely'
import { timestamp } from '../calendar/timestamps.ts'
import type { Queries } from '../store/database.ts'
import { prefixPattern } from '../store/like.ts'

export interface AuditFilter {
  hubId: number | undefined
  /** Inclusive; milliseconds since the Unix epoch. */
  since: number | undefined
  /** Exclusive. */
  until: number | undefined
  /** A whole name, or the beginning of names up to a dot: `controls.`. */
  action: string | undefined
  actor: string | undefined
  object: string | undefined
  limit: number
}

/** The newest records that fit, oldest first. */
export async function listAudit(q: Queries, filter: AuditFilter) {
  const { hubId, since, until, action, actor, object, limit } = filter
  let query = q.selectFrom('audit_log').selectAll().orderBy('id', 'desc').limit(limit)
  if (hubId !== undefined) query = query.where('hub_id', '=', hubId)
  if (since !== undefined) query = query.where('at', '>=', since)
  if (until !== undefined) query = query.where('at', '<', until)
  if (action !== undefined)
    query = action.endsWith('.')
      ? query.where(sql<boolean>`action like ${prefixPattern(action)} escape '!'`)
      : query.where('action', '=', action)
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (object !== undefined) query = query.where('object', '=', object)
  const rows = await query.execute()
  return rows.toReversed().map((row) => ({
    id: row.id,
    at: timestamp(row.at),
    actor: row.actor,
    action: row.action,
    hub_id: row.hub_id,
    object: row.object,
    result: row.result,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  }))
}
