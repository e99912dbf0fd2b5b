import { z } from 'zod'
import { FridgeSide } from '../model/hardware.ts'
import { WantedLine } from './cloud-entries.ts'
import { Heartbeat, Hex128, OrderId } from './session.ts'

const bin = z.int().min(1).max(4)
const fridge = z.int().min(1).max(8)

/** What a command asks for. Each moves something or reads something now; nothing here is desired state. */
export const CommandBody = z.discriminatedUnion('name', [
  z.object({ name: z.literal('open_bin'), bin }),
  z.object({ name: z.literal('close_bin'), bin }),
  z.object({ name: z.literal('raise_bin'), bin }),
  z.object({ name: z.literal('lower_bin'), bin }),
  z.object({ name: z.literal('get_bin_status'), bin }),
  /** Opens bins of one order for its customer; the hub checks that the order is READY or COLLECTING and owns them. */
  z.object({ name: z.literal('open_delivery'), order_id: OrderId, bins: z.array(bin).min(1) }),
  z.object({ name: z.literal('cancel_order'), order_id: OrderId }),
  /** Leaves units of an order on the shelf: all that are no longer wanted, or none. */
  z.object({ name: z.literal('reduce_order'), order_id: OrderId, lines: z.array(WantedLine).min(1) }),
  /** A person says whether an operation of unknown outcome happened (I1). */
  z.object({ name: z.literal('settle_operation'), operation_id: z.uuid(), happened: z.boolean() }),
  /** Opens and closes the door so many times. */
  z.object({ name: z.literal('cycle_bin'), bin, cycles: z.int().min(1).max(10) }),
  /** Unlocks a fridge's door; the hub locks it again by itself after a while. */
  z.object({ name: z.literal('open_fridge'), fridge, side: FridgeSide }),
  /** Locks all doors of a fridge. */
  z.object({ name: z.literal('close_fridge'), fridge }),
  /** Unlocks the main door; the hub locks it again by itself after a while. */
  z.object({ name: z.literal('open_main_door') }),
  /** Drops the serial connection of the device's controller and makes a new one. */
  z.object({ name: z.literal('reconnect_bin'), bin }),
  z.object({ name: z.literal('reconnect_fridge'), fridge }),
])
export type CommandBody = z.infer<typeof CommandBody>
export type CommandName = CommandBody['name']

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
