import { sql } from 'kysely'
import type { CommandBody, CommandResult } from '../../protocol/mqtt/command.ts'
import type { Queries, Tx } from '../store/database.ts'
import { recordset } from '../store/recordset.ts'

/** How a command ended, as the result topic or the ledger says. */
export type Finished = Pick<CommandResult, 'command_id' | 'outcome' | 'data'> & { reason: string | null }

export interface NewCommand {
  id: string
  hubId: number
  session: string
  body: CommandBody
  actor: string
}

export async function insertSent(q: Queries, command: NewCommand, now: number): Promise<void> {
  await q
    .insertInto('commands')
    .values({
      id: command.id,
      hub_id: command.hubId,
      session: command.session,
      body: JSON.stringify(command.body),
      state: 'sent',
      reason: null,
      data: null,
      actor: command.actor,
      created_at: now,
      finished_at: null,
    })
    .execute()
}

/**
 * Records how a command ended, once: a repeated result changes nothing, a late one replaces `unknown`. A hub can finish
 * its own commands only.
 */
export async function recordFinished(
  q: Queries,
  hubId: number,
  result: Finished,
  now: number,
): Promise<void> {
  await q
    .updateTable('commands')
    .set({
      state: result.outcome,
      reason: result.reason,
      data: result.data === null ? null : JSON.stringify(result.data),
      finished_at: now,
    })
    .where('id', '=', result.command_id)
    .where('hub_id', '=', hubId)
    .where('state', 'in', ['sent', 'unknown'])
    .execute()
}

/** The same for many, with one statement. Of two results of one command the first counts. */
export async function recordAllFinished(
  tx: Tx,
  hubId: number,
  results: readonly Finished[],
  now: number,
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
  await sql`
    update commands set state = r.state, reason = r.reason, data = r.data, finished_at = ${now} from ${source}
    where commands.id = r.id and commands.hub_id = ${hubId} and commands.state in ('sent', 'unknown')
  `.execute(tx.q)
}

/** Nobody answered in time. */
export async function recordSilence(q: Queries, commandId: string, now: number): Promise<void> {
  await q
    .updateTable('commands')
    .set({ state: 'unknown', reason: 'timeout', finished_at: now })
    .where('id', '=', commandId)
    .where('state', '=', 'sent')
    .execute()
}

/** Closes what a process that died left open. Returns how many. */
export async function closeLost(q: Queries, sentBefore: number, now: number): Promise<number> {
  const result = await q
    .updateTable('commands')
    .set({ state: 'unknown', reason: 'interrupted', finished_at: now })
    .where('state', '=', 'sent')
    .where('created_at', '<', sentBefore)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

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
