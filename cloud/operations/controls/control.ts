import type { z } from 'zod'
import { deadlineOf } from '../../../protocol/model/hub-commands.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import type { BinHealth, HubHealth } from '../../../protocol/model/hub-health.ts'
import type { CommandOutcome, CommandRequest, Commands } from '../../gateway/commands.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'

export interface ControlServices {
  context: CloudContext
  commands: Commands
}

/** Sends a command, with a deadline that its motion needs. The audit log records it with any outcome. */
export function sendAudited(
  { context, commands }: ControlServices,
  request: CommandRequest,
): Promise<CommandOutcome> {
  const { commandTimeoutMs } = context.settings
  return commands.send({ timeoutMs: commandTimeoutMs * deadlineOf(request.body), ...request })
}

export interface BinRequest {
  requestName: string | undefined
  query: { bin: number; hub: number }
  credential: OwnerCredential
}

export interface FridgeRequest {
  requestName: string | undefined
  query: { fridge: number; hub: number }
  credential: OwnerCredential
}

/**
 * The hub's last reported state, if the hub has such a bin. The caller has already checked the credential.
 */
export async function requireBin(context: CloudContext, query: BinRequest['query']): Promise<HubState> {
  const state = await readState(context, query.hub)
  if (state.health ? binOf(state.health, query.bin) : await isBuilt(context, query)) return state
  throw new ApiError('bin_not_found')
}

/**
 * Whether a hub that has not reported has such a bin, according to its layout; without a layout, any bin
 * counts.
 */
async function isBuilt({ db }: CloudContext, { hub, bin }: BinRequest['query']): Promise<boolean> {
  const bins = await db.kysely.selectFrom('hub_bins').select('bin').where('hub_id', '=', hub).execute()
  return bins.length === 0 || bins.some((each) => each.bin === bin)
}

export const binOf = (health: HubHealth, number: number): z.infer<typeof BinHealth> | undefined =>
  health.bins.find((bin) => bin.bin_number === number)

const readState = ({ db, runtime, settings }: CloudContext, hubId: number): Promise<HubState> =>
  hubState(db.kysely, hubId, runtime.clock.now(), settings.onlineWithinMs)

/** `details.reason` of `hardware_error`. */
type HardwareReason = 'offline' | 'timeout' | 'nack' | 'fault' | 'interlock'

/** The `details.reason` for a hub's refusal code. */
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

type Unexecuted = Exclude<CommandOutcome, { kind: 'executed' }>

/**
 * The error for a command that was not executed, or of unknown outcome. `absent`: the code for a device that the hub does
 * not have.
 */
export function hardwareError(outcome: Unexecuted, absent: ErrorCode = 'hardware_error'): ApiError {
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

/** Number of times that a door opened and closed before it failed. */
const cyclesOf = (data: Record<string, unknown> | null) =>
  typeof data?.['cycles_completed'] === 'number' && { cycles_completed: data['cycles_completed'] }

/** `details.reason` for the same outcomes. */
export function hardwareReason(outcome: Unexecuted): HardwareReason {
  if (outcome.kind === 'offline' || outcome.kind === 'timeout') return outcome.kind
  return reasons[outcome.reason] ?? 'fault'
}

/** O §4.6, standard response. 200: executed; 202: accepted, the hub continues the execution. */
export const ok = <Status extends 200 | 202, Data>(status_code: Status, response_data: Data) => ({
  status: 'ok' as const,
  result: { success: true, status_code, response_data },
})
