import { z } from 'zod'
import { CommandBody } from '../model/hub-commands.ts'
import { Heartbeat, Hex128 } from './session.ts'

/** Cloud → hub. */
export const Command = z.object({
  command_id: z.uuid(),
  /** The session that it is for: another one refuses it (I2). */
  session: Hex128,
  /** On the hub's own monotonic clock, milliseconds: past this the hub refuses it. */
  expires_monotonic: z.number(),
  body: CommandBody,
})
export type Command = z.infer<typeof Command>

/**
 * Why a command was not executed. `offline`: the device's controller is not connected; `timeout`: no result came from it;
 * `nack`: it refused; `fault`: it tried and failed; `interlock`: it must not move now.
 * `stale_session`, `expired`: the fence (I2).
 */
export const CommandReason = z.enum([
  'offline',
  'timeout',
  'nack',
  'fault',
  'interlock',
  'stale_session',
  'expired',
  'not_found',
  'too_late',
  'interrupted',
])
export type CommandReason = z.infer<typeof CommandReason>

/** Hub → cloud, once per command and connection; also reported as `command.finished` in the ledger stream. */
export const CommandResult = z.object({
  command_id: z.uuid(),
  session: Hex128,
  /** `refused`: nothing moved. `failed`: tried, see `reason`. `unknown`: it may or may not have happened (I1). */
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  reason: CommandReason.nullable(),
  /** By command: SPEC §6. */
  data: z.record(z.string(), z.unknown()).nullable(),
  /** How the hub stands after it, as a heartbeat says it: what was answered the next reading says. */
  after: Heartbeat.omit({ session: true }).optional(),
})
export type CommandResult = z.infer<typeof CommandResult>
