import { z } from 'zod'
import type { DeviceDescription } from '../../protocol/model/hardware.ts'
import { actions } from '../../protocol/serial/frames.ts'

/** What a board and the firmware on it say to one another; SPEC.md says what each means. */

export const BOARD_PROTOCOL_VERSION = 1
/** Longest line in characters: a board's whole flash fits into one. */
export const BOARD_MAX_LINE = 1_048_576

const device = z.string().max(40)
/** What stands in the flash, entry by entry; the board does not look into it. */
const Entry = z.record(z.string(), z.unknown())

/** What the firmware asks of its board. */
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
])
export type BoardRequest = z.infer<typeof BoardRequest>

/** What the board answers, by request. */
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
}

/** What the board tells its firmware by itself. `power` comes first. */
export type BoardEvent =
  | {
      on: 'power'
      protocol: number
      controller: string
      devices: readonly DeviceDescription[]
      /** How long a fall is waited for after a turn (serial SPEC §6), in milliseconds of this world. */
      drop_window_ms: number
      flash: readonly object[]
    }
  | { on: 'line'; line: string }
  | { on: 'sense'; device: string }
  | { on: 'end'; device: string; end: 'arrived' | 'stalled' | 'obstructed'; moved: boolean }
  | { on: 'drop'; device: string; units: number }

/** What the firmware asked makes no sense: nothing was done. */
export class BoardError extends Error {}

/** The board as its firmware reaches it: every answer comes at once. Throws `BoardError`. */
export type AskBoard = <K extends BoardRequest['do']>(
  request: Extract<BoardRequest, { do: K }>,
) => BoardReplies[K]

/** A firmware that runs: it lives from one start to the next loss of power. */
export interface Program {
  event(event: BoardEvent): void
  /** The power is gone. */
  cut(): void
}
