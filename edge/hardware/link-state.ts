import type { Frame, FrameBody, FrameOf, Refusal } from '../../protocol/serial/frames.ts'

/** The states, events and effects of one controller's line; `link-machine.ts` says how they follow one another. */

/** A refusal that proves that nothing moved; `stale_host` proves nothing of earlier copies (SPEC §7). */
export type CommandRefusal = Exclude<Refusal, 'stale_host'>

/** What the host may ask on a line that is up. */
export type Request =
  | ({ type: 'CMD' } & Omit<FrameBody<'CMD'>, 'host'>)
  | ({ type: 'QRY' } & FrameBody<'QRY'>)
  | ({ type: 'LST' } & FrameBody<'LST'>)
  | ({ type: 'OWN' } & FrameBody<'OWN'>)

/** What the host sends once. */
export type Unrepeated =
  | ({ type: 'PING' } & FrameBody<'PING'>)
  | ({ type: 'ACK' } & FrameBody<'ACK'>)
  | ({ type: 'NAK' } & FrameBody<'NAK'>)

export type WrittenFrame = FrameOf<'HELLO' | 'PING' | 'CMD' | 'QRY' | 'LST' | 'OWN' | 'ACK' | 'NAK'>
/** A frame under way. */
export type Outstanding = {
  frame: FrameOf<'HELLO' | 'CMD' | 'QRY' | 'LST' | 'OWN'>
  repeats: number
  sinceMs: number
}
export type Delivered = FrameOf<'WELCOME' | 'RES' | 'EVT' | 'END'>

/** Events of one boot of the controller that were handled: they may be sent again on a later connection. */
interface SeenEvents {
  boot: string
  numbers: readonly number[]
}

interface Line {
  host: string
  /** The sequence number of the next frame that the host sends. */
  seq: number
}

export interface Common {
  /** Attempts to connect since the line was last up. */
  attempt: number
  events: SeenEvents | undefined
}

export interface Greeting extends Common, Line {
  phase: 'greeting'
  /** The protocol's version that HELLO offers. */
  proto: number
  hello: Outstanding
}

export interface Up extends Common, Line {
  phase: 'up'
  welcome: FrameOf<'WELCOME'>
  outstanding: Outstanding | undefined
  queue: readonly Request[]
  /** Sequence numbers of the frames handled last. */
  seen: readonly number[]
  /** When the controller last proved that it hears us. */
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
  /** Drop this connection and make a new one. */
  | { type: 'reopen'; reason: string }
  /** `host` and `seq` are random: the session of this connection, and its first sequence number. */
  | { type: 'opened'; host: string; seq: number }
  | { type: 'closed'; reason: string }
  | { type: 'received'; frame: Frame }
  /** A frame came whole whose type or fields are unknown (SPEC §1). */
  | { type: 'unreadable'; seq: number; why: 'unsupported' | 'bad_argument' }
  /** A `deliver` has been carried out. */
  | { type: 'handled'; frame: Delivered }
  | { type: 'submit'; request: Request }
  | { type: 'timer'; timer: Timer }

/** `retry` repeats the frame under way; `pulse` paces the phase: the next attempt, the greeting's deadline, PING. */
export type Timer = 'retry' | 'pulse'

export type LinkEffect =
  | { type: 'open' }
  /** Begin another session on the open port: dispatch `opened` with a new `host` and `seq`. */
  | { type: 'renew' }
  | { type: 'close' }
  | { type: 'write'; frame: WrittenFrame }
  | { type: 'arm'; timer: Timer; afterMs: number }
  | { type: 'disarm'; timer: Timer }
  /** Arm `pulse` with the back-off of this attempt. */
  | { type: 'back_off'; attempt: number }
  /** Hand over a frame, then dispatch `handled`. An END comes with the operations that it ends. */
  | { type: 'deliver'; frame: Delivered; listed: readonly FrameOf<'OPS'>[] }
  | { type: 'refused'; command: FrameOf<'CMD'>; why: CommandRefusal }
  /** The controller does not write down whose it is; it stays as it was. */
  | { type: 'not_owned'; why: Refusal }
  /** `boot`: the controller has started anew on the open line, and this is how it names that start. */
  | { type: 'down'; reason: string; wasUp: boolean; boot?: string }

export interface LinkStep {
  state: LinkState
  effects: LinkEffect[]
}

export const initialLink: LinkState = { phase: 'stopped', attempt: 0, events: undefined }
