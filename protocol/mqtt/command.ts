import { z } from 'zod'
import { CommandBody } from '../model/hub-commands.ts'
import { Heartbeat, Hex128 } from './session.ts'

/** Cloud → hub. */
export const Command = z.object({
  command_id: z.uuid(),
  /** The session that must execute it: the hub refuses it in any other session (I2). */
  session: Hex128,
  /** A time of the hub's monotonic clock, in milliseconds. After it the hub refuses the command. */
  expires_monotonic: z.number(),
  body: CommandBody,
})
export type Command = z.infer<typeof Command>

/**
 * Why a command was not executed. `offline`: the device's controller is not connected. `timeout`: it sent no result.
 * `nack`: it refused. `fault`: it tried and failed. `interlock`: it must not move now. `stale_session`, `expired`: the
 * command came too late (I2).
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

/** Hub → cloud, once for each command and connection. The ledger stream also reports it as `command.finished`. */
export const CommandResult = z.object({
  command_id: z.uuid(),
  session: Hex128,
  /**
   * `refused`: nothing moved. `failed`: the hub tried, see `reason`. `unknown`: it may or may not have happened (I1).
   */
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  reason: CommandReason.nullable(),
  /** Depends on the command: SPEC §6. */
  data: z.record(z.string(), z.unknown()).nullable(),
  /** The hub's health after the command, in the form of a heartbeat. */
  after: Heartbeat.omit({ session: true, vitals: true }).optional(),
})
export type CommandResult = z.infer<typeof CommandResult>
