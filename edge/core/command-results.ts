import { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandReason } from '../../protocol/mqtt/command.ts'
import { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import { binSubject, fridgeSubject, HUB_SUBJECT, rowSubject } from '../../protocol/model/subject.ts'
import type { CommandEnd } from '../journal/state.ts'
import type { CommandRow, OperationRow } from '../journal/tables.ts'
import type { Context } from './context.ts'
import { cyclesEnd } from './bins/cycles.ts'
import { numberOf } from './layout.ts'
import { reportLocal } from './local-report.ts'
import { goals } from './bins/motions.ts'

/** Ends the operation's command, if it belongs to one and was the last that it waited for. */
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

/** Ends commands that an earlier life of the hub began without any operation; controllers report the end of the others. */
export function endInterrupted(context: Context): void {
  const { state } = context
  for (const command of state.commands.open())
    if (state.operations.ofCommand(command.id).length === 0) finishCommand(context, command.id, interrupted)
}

/** Ends every command that is open: the store is not the one that began it, or forgets what it has begun. */
export function abandonCommands(context: Context): void {
  for (const { id } of context.state.commands.open()) finishCommand(context, id, interrupted)
}

const interrupted: CommandEnd = { outcome: 'unknown', reason: 'interrupted', data: null }

/** Journals the outcome and reports it, once; everybody who waits is answered after the commit. */
export function finishCommand(context: Context, id: string, end: CommandEnd): void {
  const { state, ledger, store, checkpoint, cycling, waiters } = context
  const command = state.commands.find(id)
  if (!command || command.outcome !== null) return
  state.commands.change(id, end)
  cycling.delete(id)
  // Before the ledger's announcement: somebody waits for the answer, and nobody for the entry.
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

/** Nothing where another version of the service took the command on, and this one knows none of that kind. */
const bodyOf = ({ body }: CommandRow): CommandBody | undefined => CommandBody.safeParse(body).data

function subjectOf(body: CommandBody): string {
  if ('location' in body) return rowSubject(body.location)
  if ('bin' in body) return binSubject(body.bin)
  return 'fridge' in body ? fridgeSubject(body.fridge) : HUB_SUBJECT
}

/** How a command's operations end it; nothing where it goes on. */
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

/** What became of one motion, in a command's words. */
function motionEnd({ devices }: Context, operation: OperationRow): CommandEnd {
  const { state, why, ms } = operation
  const number = numberOf('bin', operation.device) ?? 0
  if (operation.action === 'dispense') return dispenseEnd(operation)
  const goal = goals[operation.action]
  const stands = devices.bin(number)
  const position = 'door' in goal ? { door: stands.door } : { lift: stands.lift }
  switch (state) {
    case 'done':
      return { outcome: 'executed', reason: null, data: { ...goal, duration_ms: ms } }
    case 'failed':
      return {
        outcome: 'failed',
        reason: failureReasons[why ?? ''] ?? 'fault',
        data: { ...position, duration_ms: ms, fault: why },
      }
    case 'nothing':
      return { outcome: 'refused', reason: refusalReasons[why ?? ''] ?? 'nack', data: null }
    case 'open':
    case 'unknown':
    case 'settled':
      return { outcome: 'unknown', reason: 'interrupted', data: position }
  }
}

/** What became of a row that was tried: what fell counts, and what nobody saw fall is unknown (I1). */
function dispenseEnd({ state, why, ms, drops, bin }: OperationRow): CommandEnd {
  const data = { drops, duration_ms: ms, fault: why }
  switch (state) {
    case 'done':
      return { outcome: 'executed', reason: null, data: { drops, bin, duration_ms: ms } }
    case 'failed':
      return { outcome: 'failed', reason: failureReasons[why ?? ''] ?? 'fault', data }
    case 'nothing': {
      const reason = refusalReasons[why ?? '']
      return reason === undefined
        ? { outcome: 'failed', reason: 'fault', data }
        : { outcome: 'refused', reason, data: null }
    }
    case 'open':
    case 'unknown':
    case 'settled':
      return { outcome: 'unknown', reason: 'interrupted', data }
  }
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

/** Of several bins: executed when at least one opened; each has a result of its own. */
function deliveryEnd(command: CommandRow, operations: readonly OperationRow[]): CommandEnd {
  const immediate = (command.data ?? []) as BinResult[]
  const moved = operations.map((operation): BinResult => {
    const bin_number = numberOf('bin', operation.device) ?? 0
    if (operation.state === 'done') return { bin_number, success: true, error: null }
    const { why } = operation
    const reason =
      operation.state === 'nothing'
        ? (refusalReasons[why ?? ''] ?? 'nack')
        : operation.state === 'failed'
          ? (failureReasons[why ?? ''] ?? 'fault')
          : 'unknown'
    return { bin_number, success: false, error: reason }
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
