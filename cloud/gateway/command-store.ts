import { sql } from 'kysely'
import { CommandBody, type CommandResult } from '../../protocol/mqtt/command.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { appendAudits } from '../platform/audit/audit.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import { statement } from '../platform/store/statement.ts'
import { auditOf } from './command-audit.ts'

/** How a command ended, as the result topic or the ledger says. */
export type Finished = Pick<CommandResult, 'command_id' | 'outcome' | 'data'> & { reason: string | null }

export interface NewCommand {
  id: string
  hubId: number
  session: string
  body: CommandBody
  actor: string
}

const insert = statement(
  (q, command: { id: string; hubId: number; session: string; body: string; actor: string; now: number }) =>
    q.insertInto('commands').values({
      id: command.id,
      hub_id: command.hubId,
      session: command.session,
      body: command.body,
      state: 'sent',
      reason: null,
      data: null,
      actor: command.actor,
      created_at: command.now,
      finished_at: null,
    }),
)

export async function insertSent(q: Queries, command: NewCommand, now: number): Promise<void> {
  await insert(q, { ...command, body: JSON.stringify(command.body), now })
}

/**
 * Records how commands of a hub ended, each once and with its entry in the audit log: a repeated result changes nothing, a
 * late one replaces `unknown`; of two for one command the first counts. A hub can finish its own commands only.
 */
export async function recordFinished(
  tx: Tx,
  clock: Clock,
  hubId: number,
  results: readonly Finished[],
): Promise<void> {
  const firsts = new Map(results.toReversed().map((result) => [result.command_id, result]))
  const source = recordset(
    tx.kind,
    { id: 'text', state: 'text', reason: 'text', data: 'text' },
    [...firsts.values()].map(({ command_id: id, outcome: state, reason, data }) => ({
      id,
      state,
      reason,
      data: data && JSON.stringify(data),
    })),
  )
  const { rows } = await sql<EndedRow>`
    update commands set state = r.state, reason = r.reason, data = r.data, finished_at = ${clock.now()} from ${source}
    where commands.id = r.id and commands.hub_id = ${hubId} and commands.state in ('sent', 'unknown')
    returning commands.id, commands.hub_id, commands.body, commands.actor, commands.state, commands.reason
  `.execute(tx.q)
  await audit(tx, clock, rows)
}

/** Nobody answered in time. */
export async function recordSilence(tx: Tx, clock: Clock, commandId: string): Promise<void> {
  const rows = await tx.q
    .updateTable('commands')
    .set({ state: 'unknown', reason: 'timeout', finished_at: clock.now() })
    .where('id', '=', commandId)
    .where('state', '=', 'sent')
    .returning(ended)
    .execute()
  await audit(tx, clock, rows)
}

/** Closes what a process that died left open. Returns how many. */
export async function closeLost(tx: Tx, clock: Clock, sentBefore: number): Promise<number> {
  const rows = await tx.q
    .updateTable('commands')
    .set({ state: 'unknown', reason: 'interrupted', finished_at: clock.now() })
    .where('state', '=', 'sent')
    .where('created_at', '<', sentBefore)
    .returning(ended)
    .execute()
  await audit(tx, clock, rows)
  return rows.length
}

const ended = ['id', 'hub_id', 'body', 'actor', 'state', 'reason'] as const
type EndedRow = Record<'id' | 'body' | 'actor' | 'state', string> & { hub_id: number; reason: string | null }

const audit = (tx: Tx, clock: Clock, rows: readonly EndedRow[]): Promise<void> =>
  appendAudits(
    tx.q,
    { clock },
    rows.map(({ id, hub_id, body, actor, state, reason }) =>
      auditOf({
        hubId: hub_id,
        body: CommandBody.parse(JSON.parse(body)),
        actor,
        commandId: id,
        result: state,
        reason,
      }),
    ),
  )

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
