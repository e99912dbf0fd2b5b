import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { CommandEnd } from '../../journal/state.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context, CycleCommand } from '../context.ts'
import type { BinAction, Step } from '../step.ts'
import { hindrance, viewBins } from './bin.ts'

/** Lets a bin's door be opened and closed again and again, from now on. Returns why it must not. */
export function beginCycles(context: Context, id: string, body: CycleCommand): CommandReason | undefined {
  const reason = hindranceOf(context, body, 'open_door')
  if (reason) return reason
  // In memory alone: a hub that has been away does not take up again what moves a door (I2).
  context.cycling.set(id, body)
  return undefined
}

/** The next motion of a cycle command, before anything else: no order takes the bin between two. */
export function cyclesStep(context: Context): Step | undefined {
  const { state, cycling } = context
  for (const [id, body] of cycling) {
    // One that began in a transaction that was undone (a full disk) never began.
    if (state.commands.find(id)?.outcome !== null) {
      cycling.delete(id)
      continue
    }
    const operations = state.operations.ofCommand(id)
    if (operations.some(({ state }) => state === 'open')) continue
    return { kind: 'move', bin: body.bin, action: nextAction(operations), commandId: id }
  }
  return undefined
}

/**
 * How a cycle command ends after its last motion; nothing where another one follows. `motionEnd` says what became of a
 * motion, in a command's words.
 */
export function cyclesEnd(
  context: Context,
  { id, body, operations }: { id: string; body: CycleCommand; operations: readonly OperationRow[] },
  motionEnd: (operation: OperationRow) => CommandEnd,
): CommandEnd | undefined {
  const completed = operations.filter(
    ({ action, state }) => action === 'close_door' && state === 'done',
  ).length
  const counted = (end: CommandEnd): CommandEnd => {
    const ms = operations.reduce((sum, operation) => sum + operation.ms, 0)
    return { ...end, data: { ...end.data, cycles_completed: completed, duration_ms: ms } }
  }
  const last = operations.at(-1)
  if (last && last.state !== 'done') {
    const end = motionEnd(last)
    // Nothing moved by the last motion, but by those before it.
    return counted(end.outcome === 'refused' && operations.length > 1 ? { ...end, outcome: 'failed' } : end)
  }
  const { door } = context.devices.bin(body.bin)
  if (completed >= body.cycles) return counted({ outcome: 'executed', reason: null, data: { door } })
  const reason = context.cycling.has(id) ? hindranceOf(context, body, nextAction(operations)) : 'interrupted'
  return reason && counted({ outcome: 'failed', reason, data: { door } })
}

const nextAction = (operations: readonly OperationRow[]): BinAction =>
  operations.at(-1)?.action === 'open_door' ? 'close_door' : 'open_door'

function hindranceOf(context: Context, body: CycleCommand, action: BinAction): CommandReason | undefined {
  const bin = viewBins(context).find((view) => view.number === body.bin)
  if (!bin) return 'not_found'
  // A door that opens and closes by itself is nothing for a bin that somebody's order lies in.
  if (bin.up && bin.orderId !== null) return 'interlock'
  return hindrance(action, bin)
}
