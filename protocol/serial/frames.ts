import { z } from 'zod'

/** The frames of the serial protocol, as values; SPEC.md says what each means, `codec.ts` how each is written. */

/**
 * 1  first version
 * 2  controllers keep whose they are: OWN, and `hub`, `ctl`, `store` of WELCOME
 * 3  a fridge reports its temperature at least once a minute; `temp=none` reports that its probe gives no reading
 */
export const SERIAL_PROTOCOL_VERSION = 3
/** The host also takes a session of this version: its controllers report only changes of temperature. SPEC §5, §9. */
export const OLDEST_SERIAL_VERSION = 2
/** Longest line in bytes, without the line feed. Whoever sees a longer one drops it and waits for a line feed. */
export const MAX_LINE_BYTES = 240

const integer = (max: number) =>
  z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .pipe(z.int().max(max))
const flag = z.enum(['0', '1']).transform((text) => text === '1')
/** 32 random bits: host session, boot id, memory id. */
const id32 = z.string().regex(/^[0-9a-f]{8}$/)
/** An operation id: the 32 hexadecimal digits of a UUIDv7 (I1). */
const op = z.string().regex(/^[0-9a-f]{32}$/)
const device = z.string().regex(/^(bin|cabinet|fridge)-[1-9]$/)
const seq = z
  .string()
  .regex(/^[0-9a-f]{4}$/)
  .transform((text) => Number.parseInt(text, 16))
const word = z.string().regex(/^[A-Za-z0-9_.:+-]{1,40}$/)

export const actions = ['open_door', 'close_door', 'raise_lift', 'lower_lift', 'dispense'] as const
export type Action = (typeof actions)[number]

/**
 * Why a command was refused: nothing moved, and nothing was remembered. Except that `stale_host` says so only of this
 * copy of the line: an earlier one may have been taken over before the controller restarted. SPEC §6, §7.
 */
export const refusals = [
  'stale_host',
  'unknown_device',
  'bad_argument',
  'busy',
  'interlock',
  'unsupported',
  'memory_fault',
] as const
export type Refusal = (typeof refusals)[number]

/** Why an operation failed. SPEC §7. */
export const failures = [
  'jam',
  'no_drop',
  'timeout',
  'sensor_fault',
  'interlock',
  'power',
  'obstructed',
] as const
export type Failure = (typeof failures)[number]

/**
 * `none`: this memory has never held the operation. `interrupted`: power failed while it ran. `forgotten`: not in the
 * memory, but old enough that it may have been overwritten: the controller cannot say what became of it. SPEC §8.
 */
export const operationStates = ['none', 'running', 'done', 'failed', 'interrupted', 'forgotten'] as const
export type OperationState = (typeof operationStates)[number]

const place = {
  shelf: integer(20).optional(),
  row: integer(40).optional(),
  bin: integer(4).optional(),
}
/** Whose a controller is (SPEC §8). */
const owner = {
  /** The hub's number. */
  hub: integer(4_000_000_000),
  /** The controller's name in the hub's description of its hardware. */
  ctl: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/),
  /** The journal of that hub: 32 random bits, minted when it was begun. */
  store: id32,
}
const outcome = {
  op,
  state: z.enum(operationStates),
  why: z.enum(failures).optional(),
  /** False only where the controller knows that nothing moved. */
  moved: flag,
  /** Units that the drop sensor saw fall. */
  drops: integer(99),
  /** Milliseconds of motion. */
  ms: integer(600_000),
}

/** Keys are written in this order; a frame with a key that is not its own is refused. */
export const frameSchemas = {
  // Host to controller.
  HELLO: z.strictObject({ proto: integer(99), host: id32 }),
  PING: z.strictObject({ t: integer(999_999_999) }),
  CMD: z.strictObject({
    host: id32,
    op,
    dev: device,
    act: z.enum(actions),
    max: integer(600_000),
    ...place,
    /** The host's own note, returned by OPS: what the operation was for. */
    ref: word.optional(),
  }),
  QRY: z.strictObject({ op }),
  LST: z.strictObject({ n: integer(256) }),
  OWN: z.strictObject({
    ...owner,
    /** The memory of operations is formatted first. */
    wipe: flag,
  }),
  // Controller to host.
  WELCOME: z.strictObject({
    proto: integer(99),
    /** The HELLO's host session: what came before this frame may be an earlier session's. Zeros at boot. SPEC §5. */
    host: id32,
    fw: word,
    boot: id32,
    mem: id32,
    /** The newest operation in memory, absent where there is none. */
    last: op.optional(),
    /** How many operations are in memory. */
    count: integer(256),
    /** Absent where no hub has taken it over since its memory was formatted. */
    hub: owner.hub.optional(),
    ctl: owner.ctl.optional(),
    store: owner.store.optional(),
  }),
  PONG: z.strictObject({ t: integer(999_999_999) }),
  RES: z.strictObject(outcome),
  OPS: z.strictObject({ ...outcome, dev: device, act: z.enum(actions), ...place, ref: word.optional() }),
  END: z.strictObject({ n: integer(256) }),
  EVT: z.strictObject({
    ev: integer(4_000_000_000),
    dev: device,
    door: z.enum(['closed', 'open', 'moving', 'unknown']).optional(),
    lift: z.enum(['up', 'down', 'moving', 'unknown']).optional(),
    /** Something lies in the bin. */
    occ: flag.optional(),
    /** Hundredths of a degree Celsius, offset by 10000: 10425 is 4.25 °C. `none`: the probe gives no reading. */
    temp: z.union([integer(20_000), z.literal('none')]).optional(),
    /** A drop outside any running operation, or after its result: the operation it belongs to, if known. */
    drop: integer(99).optional(),
    op: op.optional(),
  }),
  // Both ways.
  ACK: z.strictObject({ s: seq }),
  NAK: z.strictObject({ s: seq, why: z.enum(refusals) }),
} as const

/** Whose a controller is (SPEC §8). */
export interface Owner {
  hub: number
  ctl: string
  store: string
}

export type FrameType = keyof typeof frameSchemas
export type FrameBody<T extends FrameType> = z.output<(typeof frameSchemas)[T]>
/** A frame: its sender's sequence number (0–65535), its type, its fields. */
export type Frame = { [T in FrameType]: { seq: number; type: T } & FrameBody<T> }[FrameType]
export type FrameOf<T extends FrameType> = Extract<Frame, { type: T }>

/** Frames that the receiver acknowledges with ACK (or NAK), and the sender repeats until then. SPEC §4. */
export const acknowledged: ReadonlySet<FrameType> = new Set([
  'HELLO',
  'CMD',
  'QRY',
  'LST',
  'OWN',
  'WELCOME',
  'RES',
  'OPS',
  'END',
  'EVT',
])
