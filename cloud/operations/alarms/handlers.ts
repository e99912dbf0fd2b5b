import { acknowledgeAlarm, viewAlarm } from '../../events/alarms/alarms.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { ofReachedBooks } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { pageOf } from '../../platform/http/lists.ts'
import type { ownerAlarmRoutes } from '../../../protocol/contract/owner-alarms.ts'
import type { Queries } from '../../platform/store/database.ts'

/** Lets owners read and acknowledge alarms. */
export function alarmHandlers(context: CloudContext): Handlers<keyof typeof ownerAlarmRoutes> {
  const { db, runtime } = context
  return {
    async 'owner.alarms.list'({ credential, query: { hub_id: hubId, state, limit, cursor } }) {
      const seen = visibleAlarms(db.kysely, credential)
      const known =
        cursor === undefined
          ? undefined
          : await seen.select('seq').where('id', '=', cursor).executeTakeFirst()
      if (cursor !== undefined && !known) throw new ApiError('invalid_cursor', 'The cursor is not an alarm.')
      let query = seen
        .selectAll()
        .orderBy('seq', 'desc')
        .limit(limit + 1)
      if (hubId !== undefined) query = query.where('hub_id', '=', hubId)
      if (state !== 'all') query = query.where('cleared_at', state === 'open' ? 'is' : 'is not', null)
      if (known) query = query.where('seq', '<', known.seq)
      const rows = await query.execute()
      return pageOf(rows.map(viewAlarm), limit, ({ id }) => id)
    },

    'owner.alarms.acknowledge': ({ credential, params: { alarm_id: id } }) =>
      db.transact(async (tx) => {
        const seen = await tx
          .forUpdate(visibleAlarms(tx.q, credential).selectAll().where('id', '=', id))
          .executeTakeFirst()
        if (!seen) throw new ApiError('alarm_not_found')
        if (seen.acknowledged_at !== null) return viewAlarm(seen)
        const row = await acknowledgeAlarm(tx, context, id, credential.actor)
        const detail = { kind: seen.kind, subject: seen.subject }
        const { hub_id: hubId } = seen
        await appendAudit(tx.q, runtime, {
          actor: credential.actor,
          action: 'alarms.acknowledge',
          hubId,
          object: id,
          result: 'executed',
          detail,
        })
        return viewAlarm(row!)
      }),
  }
}

/** The alarms that a credential may see. A limited key, and an identity, see the alarms of their hubs. */
const visibleAlarms = (q: Queries, credential: OwnerCredential) =>
  q.selectFrom('alarms').where(ofReachedBooks(q, credential, 'alarms'))
