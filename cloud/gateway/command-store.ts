import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import { auditActionOf, CommandBody, objectOf } from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import { appendAudit, appendAudits, type AuditRecord } from '../platform/audit/audit.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

/** The result of a command, from the result topic or the ledger. */
export type Finished = Pick<CommandResult, 'command_id' | 'outcome' | 'data'> & { reason: string | null }

/** A requested command, with the person or program that requested it. */
interface Asked {
  hubId: number
  body: CommandBody
  actor: string
  object?: string | undefined
}

/** The columns of an ended command that the audit log needs. */
const endedColumns = ['id', 'hub_id', 'body', 'object', 'actor', 'state', 'reason'] as const

/** The reason of a row that is sent again: the result of the former attempt is not known. */
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
      // Sent again if the result is not known: the hub knows whether it has executed the command.
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet({ session: command.session, state: 'sent', reason: REPEATED, finished_at: null })
          .where('commands.state', 'in', ['sent', 'unknown']),
      )
      .returning('reason'),
)

/** Records a command that is about to be sent. `ended`: it was sent before, and its result is known. */
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
 * Records the results of a hub's commands, each once and with its audit entry. A repeated result changes nothing, and a
 * late one replaces `unknown`. If there are two results for one command, the first counts. A hub can finish only its
 * own commands. A refusal by session or time (SPEC §6) does not consult the journal. So a command that was sent before
 * may already have been executed.
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
 * Closes commands without a result as `unknown`: one that got no answer in time, or all that a dead process sent before
 * a time. A late result still replaces it. Returns their number.
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

/** The result of a command; `undefined` while there is none. */
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

/** The audit log also records a command that was not sent because the hub is offline. */
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
