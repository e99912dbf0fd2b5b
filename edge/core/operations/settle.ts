import type { OperationRow } from '../../journal/tables.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../layout.ts'
import { settleOperation } from '../ledger.ts'
import { bookDrop } from '../stock.ts'
import { clearRow } from '../blocked-rows.ts'

/** A person resolved an operation of unknown outcome, at the hub or in the cloud. Called within an event. */
export function settleManually(context: Context, operation: OperationRow, happened: boolean): void {
  const dropped = happened && operation.action === 'dispense'
  const drops = dropped ? 1 : operation.drops
  const end = { ...operation, state: 'settled', drops, ended_at: context.cloud.now() } as const
  settleOperation(context, operation, { end, by: 'person', happened })
  // The unit is refunded, now or later: it no longer belongs to an order.
  if (dropped) bookDrop(context, operation, 1, 0)
  const location = placeOf(operation)
  if (location) clearRow(context, location)
}

/**
 * Resolves by command. The same resolution again is a success. Returns `too_late` if the operation was
 * resolved differently, or was never unknown.
 */
export function settleByCommand(
  context: Context,
  operationId: string,
  happened: boolean,
): CommandReason | undefined {
  const operation = context.state.operations.find(operationId)
  if (!operation) return 'not_found'
  if (operation.state === 'unknown') settleManually(context, operation, happened)
  else if (operation.happened !== happened) return 'too_late'
  return undefined
}
