import { z } from 'zod'
import type { DeviceDescription } from '../../protocol/model/hardware.ts'
import { actions } from '../../protocol/serial/frames.ts'

/** The messages between a board and its firmware; SPEC.md defines their meaning. */

export const BOARD_PROTOCOL_VERSION = 1
/** Longest line in characters: the whole flash of a board fits into one line. */
export const BOARD_MAX_LINE = 1_048_576

const device = z.string().max(40)
/** An entry of the flash; the board does not interpret it. */
const Entry = z.record(z.string(), z.unknown())

/** The requests of the firmware. */
export const BoardRequest = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('read'), device, pin: z.enum(['door', 'lift', 'occ', 'temp']) }),
  z.strictObject({
    do: z.literal('run'),
    device,
    action: z.enum(actions),
    shelf: z.int().min(0).max(20).optional(),
    row: z.int().min(0).max(40).optional(),
    bin: z.int().min(0).max(4).optional(),
    op: z.string().regex(/^[0-9a-f]{32}$/),
  }),
  z.strictObject({ do: z.literal('stop'), device }),
  z.strictObject({ do: z.literal('supply'), device }),
  z.strictObject({ do: z.literal('flash') }),
  z.strictObject({ do: z.literal('append'), entry: Entry }),
  z.strictObject({ do: z.literal('replace'), entries: z.array(Entry).max(10_000) }),
  z.strictObject({ do: z.literal('send'), line: z.string().max(4096) }),
  z.strictObject({ do: z.literal('lamp'), shows: z.enum(['off', 'begun', 'on']) }),
  z.strictObject({ do: z.literal('reset') }),
])
export type BoardRequest = z.infer<typeof BoardRequest>

/** The replies of the board, by request. */
export interface BoardReplies {
  read: { value: string | number | boolean | null }
  run: object
  stop: { moved: boolean }
  supply: { ok: boolean }
  flash: { ok: boolean }
  append: object
  replace: object
  send: object
  lamp: object
  reset: object
}

/** The events of the board. `power` comes first. */
export type BoardEvent =
  | {
      on: 'power'
      protocol: number
      controller: string
      devices: readonly DeviceDescription[]
      /** How long the firmware waits for a fall after a turn (serial SPEC §6), in milliseconds of this world. */
      drop_window_ms: number
      flash: readonly object[]
    }
  | { on: 'line'; line: string }
  | { on: 'sense'; device: string }
  | { on: 'end'; device: string; end: 'arrived' | 'stalled' | 'obstructed'; moved: boolean }
  | { on: 'drop'; device: string; units: number }

/** An invalid request: nothing was done. */
export class BoardError extends Error {}

/** The board as its firmware reaches it: every reply is immediate. Throws `BoardError`. */
export type AskBoard = <K extends BoardRequest['do']>(
  request: Extract<BoardRequest, { do: K }>,
) => BoardReplies[K]

/** A running firmware: it lives from one start to the next loss of power. */
export interface Program {
  event(event: BoardEvent): void
  /** The power failed. */
  cut(): void
}
