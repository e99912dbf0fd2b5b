import type { Frame, FrameBody, FrameOf, Refusal } from '../../protocol/serial/frames.ts'

/** The states, events and effects of one controller's line. `link-machine.ts` defines the transitions. */

/** A refusal that proves that nothing moved. `stale_host` proves nothing about earlier copies (SPEC §7). */
export type CommandRefusal = Exclude<Refusal, 'stale_host'>

/** Requests of the host on a line that is up. */
export type Request =
  | ({ type: 'CMD' } & Omit<FrameBody<'CMD'>, 'host'>)
  | ({ type: 'QRY' } & FrameBody<'QRY'>)
  | ({ type: 'LST' } & FrameBody<'LST'>)
  | ({ type: 'OWN' } & FrameBody<'OWN'>)
  | FirmwareRequest

/** A step of an update of the controller's firmware (SPEC §12). */
export type FirmwareRequest = {
  [T in 'FWQ' | 'IMG' | 'BLK' | 'USE' | 'KEEP']: { type: T } & FrameBody<T>
}[keyof typeof firmwareTypes]
const firmwareTypes = { FWQ: true, IMG: true, BLK: true, USE: true, KEEP: true } as const
export const isOfFirmware = (frame: { type: string }): frame is FirmwareRequest =>
  Object.hasOwn(firmwareTypes, frame.type)

/** Frames that the host sends without repetition. */
export type Unrepeated =
  | ({ type: 'PING' } & FrameBody<'PING'>)
  | ({ type: 'ACK' } & FrameBody<'ACK'>)
  | ({ type: 'NAK' } & FrameBody<'NAK'>)

export type WrittenFrame = Outstanding['frame'] | FrameOf<'PING' | 'ACK' | 'NAK'>
/** A frame that is sent and not acknowledged yet. */
export type Outstanding = {
  frame: FrameOf<'HELLO' | Request['type']>
  repeats: number
  sinceMs: number
}
export type Delivered = FrameOf<'WELCOME' | 'RES' | 'EVT' | 'END' | 'FW'>

/** Handled events of one boot of the controller. The controller may repeat them on a later connection. */
interface SeenEvents {
  boot: string
  numbers: readonly number[]
}

interface Line {
  host: string
  /** The sequence number of the host's next frame. */
  seq: number
}

export interface Common {
  /** Attempts to connect since the line was last up. */
  attempt: number
  events: SeenEvents | undefined
}

export interface Greeting extends Common, Line {
  phase: 'greeting'
  /** The protocol version that HELLO offers. */
  proto: number
  hello: Outstanding
}

export interface Up extends Common, Line {
  phase: 'up'
  welcome: FrameOf<'WELCOME'>
  outstanding: Outstanding | undefined
  queue: readonly Request[]
  /** The last handled frames: `atMs` is when the frame last arrived. */
  seen: readonly { seq: number; atMs: number }[]
  /** When the controller last proved that it receives the host's frames. */
  heardMs: number
  /** The answer to LST so far. */
  listing: readonly FrameOf<'OPS'>[] | undefined
}

export type LinkState =
  | (Common & { phase: 'stopped' })
  | (Common & { phase: 'waiting' })
  /** `proto`: the version that HELLO will offer. */
  | (Common & { phase: 'opening'; proto: number })
  | Greeting
  | Up

export type LinkEvent =
  | { type: 'start' }
  | { type: 'stop' }
  /** Drops this connection and opens a new one. */
  | { type: 'reopen'; reason: string }
  /** `host` and `seq` are random: the session of this connection, and its first sequence number. */
  | { type: 'opened'; host: string; seq: number }
  | { type: 'closed'; reason: string }
  | { type: 'received'; frame: Frame }
  /** A complete frame with an unknown type or field (SPEC §1). */
  | { type: 'unreadable'; seq: number; why: 'unsupported' | 'bad_argument' }
  /** A `deliver` effect has been performed. */
  | { type: 'handled'; frame: Delivered }
  | { type: 'submit'; request: Request }
  | { type: 'timer'; timer: Timer }

/**
 * `retry` repeats the outstanding frame. `pulse` times the phase: the next attempt, the greeting's deadline,
 * or PING.
 */
export type Timer = 'retry' | 'pulse'

export type LinkEffect =
  | { type: 'open' }
  /** Starts another session on the open port: dispatch `opened` with a new `host` and `seq`. */
  | { type: 'renew' }
  | { type: 'close' }
  | { type: 'write'; frame: WrittenFrame }
  | { type: 'arm'; timer: Timer; afterMs: number }
  | { type: 'disarm'; timer: Timer }
  /** Arms `pulse` with the back-off of this attempt. */
  | { type: 'back_off'; attempt: number }
  /** Passes a frame to its handler; then dispatch `handled`. An END comes with the listed operations. */
  | { type: 'deliver'; frame: Delivered; listed: readonly FrameOf<'OPS'>[] }
  | { type: 'refused'; command: FrameOf<'CMD'>; why: CommandRefusal }
  /** The controller did not store its owner; its owner is unchanged. */
  | { type: 'not_owned'; why: Refusal }
  /** `why`: the controller refused the step. */
  | { type: 'answered'; request: FirmwareRequest; why: Refusal | undefined }
  /** `boot`: the new boot id, if the controller restarted on the open line. */
  | { type: 'down'; reason: string; wasUp: boolean; boot?: string }

export interface LinkStep {
  state: LinkState
  effects: LinkEffect[]
}

export const initialLink: LinkState = { phase: 'stopped', attempt: 0, events: undefined }
