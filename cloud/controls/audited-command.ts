import type { CommandBody } from '../../protocol/mqtt/command.ts'
import { appendAudit } from '../audit/audit.ts'
import type { CloudContext } from '../context.ts'
import type { CommandOutcome, CommandRequest, Commands } from '../gateway/command-outcome.ts'

export interface ControlServices {
  context: CloudContext
  commands: Commands
}

/** The lift takes longer than a door: the time until a command on it counts as unanswered, in `commandTimeoutMs`. */
const LIFT_FACTOR = 2

/**
 * Sends a command, and writes into the audit log who asked for what and what came of it: with the outcome itself, in one
 * commit, where the hub answers in time.
 */
export function sendAudited(
  { context, commands }: ControlServices,
  request: CommandRequest,
): Promise<CommandOutcome> {
  const { commandTimeoutMs } = context.settings
  const timeoutMs = movesLift(request.body) ? commandTimeoutMs * LIFT_FACTOR : commandTimeoutMs
  return commands.send({
    timeoutMs,
    note: (q, outcome) =>
      appendAudit(q, context.runtime, {
        actor: request.actor,
        action: `controls.${request.body.name}`,
        hubId: request.hubId,
        object: objectOf(request.body),
        result: outcome.kind === 'timeout' ? 'unknown' : outcome.kind,
        detail: {
          ...('commandId' in outcome && { command_id: outcome.commandId }),
          ...('reason' in outcome && { reason: outcome.reason }),
        },
      }),
    ...request,
  })
}

function movesLift(body: CommandBody): boolean {
  return body.name === 'raise_bin' || body.name === 'lower_bin'
}

function objectOf(body: CommandBody): string {
  switch (body.name) {
    case 'open_bin':
    case 'close_bin':
    case 'raise_bin':
    case 'lower_bin':
    case 'get_bin_status':
      return `bin-${body.bin}`
    case 'open_delivery':
    case 'cancel_order':
      return `order-${body.order_id}`
  }
}
