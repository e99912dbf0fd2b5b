import { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandReason } from '../../protocol/mqtt/command.ts'
import { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import { binSubject, fridgeSubject, HUB_SUBJECT, rowSubject } from '../../protocol/model/subject.ts'
import type { CommandEnd } from '../journal/state.ts'
import type { CommandRow, OperationRow } from '../journal/tables.ts'
import type { Context } from './context.ts'
import { cyclesEnd } from './bins/cycles.ts'
import { numberOf } from './layout.ts'
import { reportLocal } from './ledger.ts'
import { goals } from './bins/bin.ts'

/** Ends the operation's command, if this was the last operation that the command waited for. */
export function finishCommandOf(context: Context, operation: OperationRow): void {
  const { state } = context
  if (operation.command_id === null) return
  const command = state.commands.find(operation.command_id)
  if (!command || command.outcome !== null) return
  const operations = state.operations.ofCommand(command.id)
  if (operations.some((each) => each.state === 'open')) return
  const end = endOf(context, command, operations)
  if (end) finishCommand(context, command.id, end)
}

/** Ends open commands of an earlier process that have no operation. Controllers report the end of the others. */
export function endInterrupted(context: Context, former: readonly CommandRow[]): void {
  for (const { id } of former)
    if (context.state.operations.ofCommand(id).length === 0) finishCommand(context, id, interrupted)
}

/** Ends every open command: another store started them, or this store forgets its operations. */
export function abandonCommands(context: Context): void {
  for (const { id } of context.state.commands.open()) finishCommand(context, id, interrupted)
}

const interrupted: CommandEnd = { outcome: 'unknown', reason: 'interrupted', data: null }

/** Journals and reports the outcome once. All waiting callers get their reply after the commit. */
export function finishCommand(context: Context, id: string, end: CommandEnd): void {
  const { state, ledger, store, checkpoint, cycling, waiters } = context
  const command = state.commands.find(id)
  if (!command || command.outcome !== null) return
  state.commands.change(id, end)
  cycling.delete(id)
  // Replies before the ledger announces the entry: a caller waits for the reply, and no caller waits for the
  // entry.
  store.afterCommit(() => {
    checkpoint('core.before-reply')
    const waiting = waiters.get(id) ?? []
    waiters.delete(id)
    for (const { session, reply } of waiting) reply({ command_id: id, session, ...end })
  })
  if (!command.is_local) return ledger.report({ kind: 'command.finished', command_id: id, ...end })
  const body = bodyOf(command)
  const { data: by } = LocalActor.safeParse(command.local_actor)
  reportLocal(context, body?.name ?? 'unknown', body ? subjectOf(body) : HUB_SUBJECT, {
    by,
    outcome: end.outcome,
  })
}

/** Undefined if another version of the service accepted a kind of command that this version does not have. */
const bodyOf = ({ body }: CommandRow): CommandBody | undefined => CommandBody.safeParse(body).data

function subjectOf(body: CommandBody): string {
  if ('location' in body) return rowSubject(body.location)
  if ('bin' in body) return binSubject(body.bin)
  return 'fridge' in body ? fridgeSubject(body.fridge) : HUB_SUBJECT
}

/** The end of a command by its operations; undefined if it continues. */
function endOf(
  context: Context,
  command: CommandRow,
  operations: readonly OperationRow[],
): CommandEnd | undefined {
  const body = bodyOf(command)
  if (!body) return interrupted
  if (body.name === 'open_delivery') return deliveryEnd(command, operations)
  if (body.name === 'cycle_bin')
    return cyclesEnd(context, { id: command.id, body, operations }, (last) => motionEnd(context, last))
  const [operation] = operations
  return operation ? motionEnd(context, operation) : { outcome: 'failed', reason: 'fault', data: null }
}

/** The outcome of an operation, and the reason. */
function outcomeOf({ state, why }: OperationRow): Pick<CommandEnd, 'outcome' | 'reason'> {
  switch (state) {
    case 'done':
      return { outcome: 'executed', reason: null }
    case 'failed':
      return { outcome: 'failed', reason: failureReasons[why ?? ''] ?? 'fault' }
    case 'nothing':
      return { outcome: 'refused', reason: refusalReasons[why ?? ''] ?? 'nack' }
    case 'open':
    case 'unknown':
    case 'settled':
      return { outcome: 'unknown', reason: 'interrupted' }
  }
}

/** The outcome of one motion as a command's end. */
function motionEnd({ devices }: Context, operation: OperationRow): CommandEnd {
  const { why, ms } = operation
  if (operation.action === 'dispense') return dispenseEnd(operation)
  const end = outcomeOf(operation)
  const goal = goals[operation.action]
  const stands = devices.bin(numberOf('bin', operation.device) ?? 0)
  const position = 'door' in goal ? { door: stands.door } : { lift: stands.lift }
  const data = {
    executed: { ...goal, duration_ms: ms },
    failed: { ...position, duration_ms: ms, fault: why },
    refused: null,
    unknown: position,
  }
  return { ...end, data: data[end.outcome] }
}

/**
 * The outcome of a test dispense. Only units that were seen to fall count; without that the outcome is
 * unknown (I1).
 */
function dispenseEnd(operation: OperationRow): CommandEnd {
  const { why, ms, drops, bin } = operation
  const end = outcomeOf(operation)
  const data = { drops, duration_ms: ms, fault: why }
  if (end.outcome === 'executed') return { ...end, data: { drops, bin, duration_ms: ms } }
  if (end.outcome !== 'refused') return { ...end, data }
  // The row was tried: the controller has reported a fault that moved nothing.
  return end.reason === 'nack' ? { outcome: 'failed', reason: 'fault', data } : { ...end, data: null }
}

const failureReasons: Partial<Record<string, CommandReason>> = {
  timeout: 'timeout',
  interlock: 'interlock',
  interrupted: 'interrupted',
}
const refusalReasons: Partial<Record<string, CommandReason>> = {
  never: 'offline',
  busy: 'interlock',
  interlock: 'interlock',
}

/** Several bins: executed if at least one opened. Each bin has its own result. */
function deliveryEnd(command: CommandRow, operations: readonly OperationRow[]): CommandEnd {
  const immediate = (command.data ?? []) as BinResult[]
  const moved = operations.map((operation): BinResult => {
    const { outcome, reason } = outcomeOf(operation)
    return {
      bin_number: numberOf('bin', operation.device) ?? 0,
      success: outcome === 'executed',
      error: outcome === 'unknown' ? 'unknown' : reason,
    }
  })
  return deliveryOutcome([...immediate, ...moved])
}

export interface BinResult {
  bin_number: number
  success: boolean
  error: string | null
}

export function deliveryOutcome(unsorted: readonly BinResult[]): CommandEnd {
  const results = unsorted.toSorted((a, b) => a.bin_number - b.bin_number)
  if (results.some((result) => result.success))
    return { outcome: 'executed', reason: null, data: { results } }
  const error = results[0]?.error
  const reason: CommandReason =
    error === 'offline' ||
    error === 'interlock' ||
    error === 'timeout' ||
    error === 'not_found' ||
    error === 'nack'
      ? error
      : 'fault'
  const tried = results.some((result) => !untried.has(result.error ?? ''))
  return { outcome: tried ? 'failed' : 'refused', reason, data: { results } }
}

const untried = new Set(['offline', 'interlock', 'not_found', 'nack'])
