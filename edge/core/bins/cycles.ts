import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { CommandEnd } from '../../journal/state.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context, CycleCommand } from '../context.ts'
import type { BinAction, Step } from '../step.ts'
import { hindrance, viewBins } from './bin.ts'

/** Starts opening and closing a bin's door repeatedly. Returns the reason if it is refused. */
export function beginCycles(context: Context, id: string, body: CycleCommand): CommandReason | undefined {
  const reason = hindranceOf(context, body, 'open_door')
  if (reason) return reason
  // In memory only: after a restart the hub does not continue to move a door (I2).
  context.cycling.set(id, body)
  return undefined
}

/**
 * The next motion of a cycle command. It comes before all other steps, so that no order takes the bin between
 * two motions.
 */
export function cyclesStep(context: Context): Step | undefined {
  const { state, cycling } = context
  for (const [id, body] of cycling) {
    // A cycle from a rolled-back transaction (full disk) never started.
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
 * How a cycle command ends after its last motion; undefined if another motion follows. `motionEnd` returns
 * the outcome of one motion.
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
    // The last motion moved nothing, but earlier motions did.
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
  // A door must not cycle on a bin that holds a customer's order.
  if (bin.up && bin.orderId !== null) return 'interlock'
  return hindrance(action, bin)
}
