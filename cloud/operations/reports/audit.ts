import { DAY_MS } from '../../../protocol/model/times.ts'
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { auditColumns, type AuditRecord } from '../../../protocol/contract/owner-reports.ts'
import { ApiError } from '../../platform/api-error.ts'
import { listAudit, ofOwner, ofPresentOwner } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { readableBooks, readOwner, requireBooks } from '../../platform/credentials/hub-access.ts'
import { rangeIn, requireOrder, withinRange } from '../../platform/http/date-range.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { answerList, pageOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'

/** The audit log: all of it for operators, and the part of an owner for its keys. */
export const auditHandlers = ({ db }: CloudContext): Handlers<'owner.audit.read'> => ({
  async 'owner.audit.read'(request) {
    const { query, credential } = request
    const q = db.kysely
    const { furtherHubs = [] } = credential
    const readsAll = furtherHubs === '*' || furtherHubs.length > 0
    if (query.hub_id !== undefined && !readsAll)
      await requireBooks(q, (id) => readOwner(q, id), credential, query.hub_id)
    const { from, to, action, actor, object } = query
    const conditions: RawBuilder<SqlBool>[] = readsAll ? [] : [visibleTo(q, credential)]
    const all = await readableBooks(q, readsAll ? { hubs: '*', ownerId: null } : credential, query.hub_id)
    const bounds: { since?: number; until?: number } = {}
    if (from !== undefined || to !== undefined) {
      requireOrder(['UTC', ...all.map(({ timezone }) => timezone)], query)
      const { since, until } = rangeIn('UTC', query)
      // With a plain `or` PostgreSQL reads and sorts all records of the range.
      conditions.push(
        sql`coalesce(${withinRange(q, 'at', all, query)} or (hub_id is null and at >= ${since} and at < ${until}), false)`,
      )
      // Bounds of all time zones, which the indexes have.
      bounds.since = since - DAY_MS
      bounds.until = until + DAY_MS
    }
    const hubs = readsAll ? undefined : [...all.map(({ hubId }) => hubId), null]
    const filter = { hubId: query.hub_id, action, actor, object, conditions, hubs, ...bounds }
    return answerList(request, auditColumns, async ({ cursor, limit }) => {
      const before = cursor === undefined ? undefined : await requireRecord(q, cursor, conditions)
      const found = await listAudit(q, { ...filter, before, limit: limit + 1 })
      const records = found.toReversed().map((record): AuditRecord => ({ ...record, id: String(record.id) }))
      return pageOf(records, limit, ({ id }) => id)
    })
  },
})

/** Throws `invalid_cursor` unless the caller can read the record. */
async function requireRecord(
  q: Queries,
  cursor: string,
  conditions: readonly RawBuilder<SqlBool>[],
): Promise<number> {
  const id = /^\d{1,15}$/.test(cursor) ? Number(cursor) : 0
  const [known] = await listAudit(q, { conditions: [...conditions, sql`id = ${id}`], limit: 1 })
  if (!known) throw new ApiError('invalid_cursor')
  return id
}

/** The records of an owner's hubs and keys; for a limited key those of its hubs and of itself. */
function visibleTo(q: Queries, { ownerId, hubs, keyPrefix }: OwnerCredential): RawBuilder<SqlBool> {
  if (hubs === '*') return ownerId === null ? sql`hub_id is not null` : ofOwner(ownerId)
  const ofHubs = sql`hub_id in ${numbersIn(q, hubs)}`
  if (ownerId === null) return sql`(${ofHubs} and ${ofPresentOwner})`
  const itself = sql`(hub_id is null and (actor = ${`key:${keyPrefix}`} or object = ${`key-${keyPrefix}`}))`
  return sql`((${ofHubs} and ${ofOwner(ownerId)}) or ${itself})`
}
