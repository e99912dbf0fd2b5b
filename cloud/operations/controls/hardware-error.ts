import type { CommandOutcome } from '../../gateway/commands.ts'
import { ApiError } from '../../platform/api-error.ts'

/** `details.reason` of `hardware_error` (contract §2). */
export type HardwareReason = 'offline' | 'timeout' | 'nack' | 'fault' | 'interlock'

/** What a hub's reason for not executing a command is to the caller. */
const reasons: Record<string, HardwareReason> = {
  offline: 'offline',
  timeout: 'timeout',
  nack: 'nack',
  fault: 'fault',
  interlock: 'interlock',
  // The fence (SPEC §6): the hub has another connection by now, or the command came late. Nothing moved.
  stale_session: 'offline',
  expired: 'timeout',
  too_late: 'interlock',
  interrupted: 'fault',
}

export type Unexecuted = Exclude<CommandOutcome, { kind: 'executed' }>

/**
 * The error that a command which was not executed, or not as far as is known, is answered with (contract §6). `absent`: the
 * code for a device that the hub says it does not have.
 */
export function hardwareError(
  outcome: Unexecuted,
  absent: 'bin_not_found' | 'fridge_not_found' | 'hardware_error' = 'hardware_error',
): ApiError {
  switch (outcome.kind) {
    case 'offline':
      return new ApiError('hardware_error', 'The hub is offline. Nothing was sent.', { reason: 'offline' })
    case 'timeout':
      return new ApiError(
        'hardware_error',
        'The hub did not answer in time. It may or may not have happened.',
        {
          reason: 'timeout',
          command_id: outcome.commandId,
          outcome: 'unknown',
        },
      )
    case 'refused':
    case 'failed':
      if (outcome.reason === 'not_found' && absent !== 'hardware_error') return new ApiError(absent)
      return new ApiError('hardware_error', undefined, {
        reason: hardwareReason(outcome),
        command_id: outcome.commandId,
        outcome: outcome.kind,
        ...cyclesOf(outcome.data),
      })
  }
}

/** How often a door had opened and closed before it failed. */
const cyclesOf = (data: Record<string, unknown> | null) =>
  typeof data?.['cycles_completed'] === 'number' && { cycles_completed: data['cycles_completed'] }

/** The same in one word. */
export function hardwareReason(outcome: Unexecuted): HardwareReason {
  if (outcome.kind === 'offline' || outcome.kind === 'timeout') return outcome.kind
  return reasons[outcome.reason] ?? 'fault'
}
