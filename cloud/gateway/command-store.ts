import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import { auditActionOf, CommandBody, objectOf } from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import { appendAudit, appendAudits, type AuditRecord } from '../platform/audit/audit.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

/** How a command ended, as the result topic or the ledger says. */
export type Finished = Pick<CommandResult, 'command_id' | 'outcome' | 'data'> & { reason: string | null }

/** What was asked of a hub, and by whom. */
interface Asked {
  hubId: number
  body: CommandBody
  actor: string
  object?: string | undefined
}

/** Of a command that has ended, what the audit log says. */
const endedColumns = ['id', 'hub_id', 'body', 'object', 'actor', 'state', 'reason'] as const

/** The reason of a row that is sent again: what came of it before nobody knows. */
const REPEATED = 'repeated'

const insert = statement(
  (
    q,
    command: {
      id: string
      hubId: number
      session: string
      body: string
      object: string
      actor: string
      now: number
    },
  ) =>
    q
      .insertInto('commands')
      .values({
        id: command.id,
        hub_id: command.hubId,
        session: command.session,
        body: command.body,
        object: command.object,
        state: 'sent',
        reason: null,
        data: null,
        actor: command.actor,
        created_at: command.now,
        finished_at: null,
      })
      // Sent again where nobody knows what came of it: the hub knows whether it has executed it.
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet({ session: command.session, state: 'sent', reason: REPEATED, finished_at: null })
          .where('commands.state', 'in', ['sent', 'unknown']),
      )
      .returning('reason'),
)

/** Records a command that is about to be sent. `ended`: it was sent before, and how it ended is known. */
export async function insertSent(
  q: Queries,
  command: Asked & { id: string; session: string },
  now: number,
): Promise<'new' | 'repeated' | 'ended'> {
  const { body, object = objectOf(body) } = command
  const [recorded] = await insert(q, { ...command, body: JSON.stringify(body), object, now })
  if (!recorded) return 'ended'
  return recorded.reason === REPEATED ? 'repeated' : 'new'
}

/**
 * Records how commands of a hub ended, each once and with its entry in the audit log: a repeated result changes nothing, a
 * late one replaces `unknown`; of two for one command the first counts. A hub can finish its own commands only. The fence
 * (SPEC §6) asks no journal: what it refuses of a command that was sent before may have been executed then.
 */
export async function recordFinished(
  tx: Tx,
  clock: Clock,
  hubId: number,
  results: readonly Finished[],
): Promise<void> {
  const known = new Set<string>()
  for (const { command_id: id, outcome: state, reason, data } of results) {
    if (known.has(id)) continue
    known.add(id)
    const isFenced = state === 'refused' && (reason === 'stale_session' || reason === 'expired')
    const [ended] = await finish(tx.q, {
      id,
      hubId,
      state,
      stateOfRepeated: isFenced ? 'unknown' : state,
      reason,
      data: data && JSON.stringify(data),
      now: clock.now(),
    })
    if (ended) await appendAudit(tx.q, { clock }, auditOfEnded(ended))
  }
}

const finish = statement(
  (
    q,
    end: Record<'state' | 'stateOfRepeated', CommandResult['outcome']> &
      Record<'reason' | 'data', string | null> & { id: string } & Record<'hubId' | 'now', number>,
  ) =>
    q
      .updateTable('commands')
      .set((eb) => ({
        reason: end.reason,
        data: end.data,
        finished_at: end.now,
        state: eb.case().when('reason', '=', REPEATED).then(end.stateOfRepeated).else(end.state).end(),
      }))
      .where('id', '=', end.id)
      .where('hub_id', '=', end.hubId)
      .where('state', 'in', ['sent', 'unknown'])
      .returning(endedColumns),
)

/**
 * Closes commands without a result as `unknown`: one that nobody answered in time, or all that were sent before a time, by
 * a process that died. A late result still replaces it. Returns how many.
 */
export async function closeUnanswered(
  tx: Tx,
  clock: Clock,
  which: { id: string } | { sentBefore: number },
): Promise<number> {
  const reason = 'id' in which ? 'timeout' : 'interrupted'
  const rows = await tx.q
    .updateTable('commands')
    .set({ state: 'unknown', reason, finished_at: clock.now() })
    .where('state', '=', 'sent')
    .where((eb) => ('id' in which ? eb('id', '=', which.id) : eb('created_at', '<', which.sentBefore)))
    .returning(endedColumns)
    .execute()
  await appendAudits(tx.q, { clock }, rows.map(auditOfEnded))
  return rows.length
}

export const readCommand = (q: Queries, id: string) =>
  q.selectFrom('commands').select(['state', 'created_at']).where('id', '=', id).executeTakeFirst()

/** How a command ended; `undefined` while it has not. */
export async function readFinished(q: Queries, commandId: string): Promise<Finished | undefined> {
  const row = await q
    .selectFrom('commands')
    .select(['state', 'reason', 'data'])
    .where('id', '=', commandId)
    .where('state', '!=', 'sent')
    .executeTakeFirst()
  if (!row) return undefined
  return {
    command_id: commandId,
    outcome: row.state as Finished['outcome'],
    reason: row.reason,
    data: row.data === null ? null : (JSON.parse(row.data) as Record<string, unknown>),
  }
}

type EndedRow = Record<'id' | 'body' | 'object' | 'actor' | 'state', string> & {
  hub_id: number
  reason: string | null
}

function auditOfEnded({ id, hub_id: hubId, body, object, actor, state, reason }: EndedRow): AuditRecord {
  const asked: Asked = { hubId, body: CommandBody.parse(JSON.parse(body)), object, actor }
  return auditOf(asked, state, { command_id: id, ...(reason !== null && { reason }) })
}

/** The audit log has a command too that was not sent, as its hub is not there. */
export const auditUnsent = (q: Queries, runtime: Runtime, asked: Asked): Promise<void> =>
  appendAudit(q, runtime, auditOf(asked, 'offline', {}))

const auditOf = (
  { hubId, body, actor, object = objectOf(body) }: Asked,
  result: string,
  detail: Record<string, unknown>,
): AuditRecord => ({
  actor,
  action: auditActionOf(body),
  hubId,
  object,
  result,
  detail: body.name === 'settle_operation' ? { happened: body.happened, ...detail } : detail,
})
