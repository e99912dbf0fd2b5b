import type { OperationRow } from '../../journal/tables.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../layout.ts'
import { settleOperation } from '../ledger.ts'
import { bookDrop } from '../stock.ts'
import { clearRow } from '../withheld.ts'

/** A person has said whether an operation of unknown outcome happened, here or from afar. Within an event. */
export function settleByWord(context: Context, operation: OperationRow, happened: boolean): void {
  const dropped = happened && operation.action === 'dispense'
  const drops = dropped ? 1 : operation.drops
  const end = { ...operation, state: 'settled', drops, ended_at: context.cloud.now() } as const
  settleOperation(context, operation, { end, by: 'person', happened })
  // Its money has gone back, or will: it belongs to no order any more.
  if (dropped) bookDrop(context, operation, 1, 0)
  const location = placeOf(operation)
  if (location) clearRow(context, location)
}

/**
 * The same by a command. One that is settled so already is as it should be; `too_late` where it was settled otherwise, or
 * nothing was unknown of it.
 */
export function settleByCommand(
  context: Context,
  operationId: string,
  happened: boolean,
): CommandReason | undefined {
  const operation = context.state.operations.find(operationId)
  if (!operation) return 'not_found'
  if (operation.state === 'unknown') settleByWord(context, operation, happened)
  else if (operation.happened !== happened) return 'too_late'
  return undefined
}
