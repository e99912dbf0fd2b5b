import type { CommandBody } from '../../../protocol/mqtt/command.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { CommandOutcome, CommandRequest, Commands } from '../../gateway/commands.ts'

export interface ControlServices {
  context: CloudContext
  commands: Commands
}

/** Sends a command, with as long a deadline as its motion needs. The audit log has it, whatever comes of it. */
export function sendAudited(
  { context, commands }: ControlServices,
  request: CommandRequest,
): Promise<CommandOutcome> {
  const { commandTimeoutMs } = context.settings
  return commands.send({ timeoutMs: commandTimeoutMs * durationOf(request.body), ...request })
}

/** How long a command may take until it counts as unanswered, in `commandTimeoutMs`: a lift is slower than a door. */
function durationOf(body: CommandBody): number {
  switch (body.name) {
    case 'raise_bin':
    case 'lower_bin':
      return 2
    case 'cycle_bin':
      return 1 + 0.4 * body.cycles
    case 'open_bin':
    case 'close_bin':
    case 'get_bin_status':
    case 'reconnect_bin':
    case 'open_fridge':
    case 'close_fridge':
    case 'reconnect_fridge':
    case 'open_main_door':
    case 'open_delivery':
    case 'cancel_order':
      return 1
  }
}
