import { z } from 'zod'

/** The frames of the serial protocol, as values. SPEC.md defines their meaning, `codec.ts` their form. */

/**
 * 1  first version
 * 2  controllers store their owner: OWN, and `hub`, `ctl`, `store` of WELCOME
 * 3  a fridge reports its temperature at least once a minute; `temp=none` reports that its probe gives no reading
 */
export const SERIAL_PROTOCOL_VERSION = 3
/** The host also accepts sessions of this version: its controllers report only changes of temperature. SPEC §5, §9. */
export const OLDEST_SERIAL_VERSION = 2
/** Longest image of a firmware in bytes, and the bytes of one block. SPEC §12. */
export const MAX_IMAGE_BYTES = 1_048_576
export const BLOCK_BYTES = 128
/** Longest line in bytes, without the line feed. A receiver drops a longer one and waits for a line feed. */
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
const build = integer(4_000_000_000)
/** SHA-256. */
const sum = z.string().regex(/^[0-9a-f]{64}$/)

export const actions = ['open_door', 'close_door', 'raise_lift', 'lower_lift', 'dispense'] as const
export type Action = (typeof actions)[number]

/**
 * Why a command was refused: nothing moved, and the memory does not contain the operation. Exception: `stale_host`
 * holds only for this copy of the line, because the controller may have taken over an earlier copy before a restart.
 * SPEC §6, §7.
 */
export const refusals = [
  'stale_host',
  'unknown_device',
  'bad_argument',
  'busy',
  'interlock',
  'unsupported',
  'memory_fault',
  'bad_digest',
  'bad_signature',
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
 * `none`: this memory has never contained the operation. `interrupted`: the power failed while it ran. `forgotten`: not
 * in the memory, but the record may have been overwritten, so the controller does not know the result. SPEC §8.
 */
export const operationStates = ['none', 'running', 'done', 'failed', 'interrupted', 'forgotten'] as const
export type OperationState = (typeof operationStates)[number]

const place = {
  shelf: integer(20).optional(),
  row: integer(40).optional(),
  bin: integer(4).optional(),
}
/** The owner of a controller (SPEC §8). */
const owner = {
  hub: integer(4_000_000_000),
  /** The controller's name in the hub's description of its hardware. */
  ctl: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/),
  /** The id of the hub's journal: 32 random bits, created with the journal. */
  store: id32,
}
const outcome = {
  op,
  state: z.enum(operationStates),
  why: z.enum(failures).optional(),
  /** False only if the controller knows that nothing moved. */
  moved: flag,
  /** Units that the drop sensor saw fall. */
  drops: integer(99),
  /** Duration of the motion in milliseconds. */
  ms: integer(600_000),
}

/** Keys are written in this order. A frame with an unknown key is refused. */
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
    /** The host's own note on the purpose of the operation; OPS returns it. */
    ref: word.optional(),
  }),
  QRY: z.strictObject({ op }),
  LST: z.strictObject({ n: integer(256) }),
  OWN: z.strictObject({
    ...owner,
    /** Format the memory of operations first. */
    wipe: flag,
  }),
  /** `v`: the version of SPEC §12, 1. */
  FWQ: z.strictObject({ v: integer(99) }),
  IMG: z.strictObject({ kind: word, build, size: integer(MAX_IMAGE_BYTES), sum }),
  BLK: z.strictObject({
    at: integer(MAX_IMAGE_BYTES),
    /** 1 to 128 bytes in base64url without padding. */
    data: z.string().regex(/^[A-Za-z0-9_-]{2,171}$/),
  }),
  USE: z.strictObject({ sum }),
  KEEP: z.strictObject({ build }),
  // Controller to host.
  WELCOME: z.strictObject({
    proto: integer(99),
    /**
     * The host session of the HELLO. Frames before this one may belong to an earlier session. Zeros at boot. SPEC §5.
     */
    host: id32,
    fw: word,
    boot: id32,
    mem: id32,
    /** The newest operation in memory, absent if there is none. */
    last: op.optional(),
    /** The number of operations in memory. */
    count: integer(256),
    /** Absent if no hub has taken the controller over since its memory was formatted. */
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
    /** An object lies in the bin. */
    occ: flag.optional(),
    /** Hundredths of a degree Celsius, offset by 10000: 10425 is 4.25 °C. `none`: the probe gives no reading. */
    temp: z.union([integer(20_000), z.literal('none')]).optional(),
    /**
     * Units that fell outside any running operation, or after its result. `op`: the operation that they belong to, if
     * known.
     */
    drop: integer(99).optional(),
    op: op.optional(),
  }),
  FW: z.strictObject({
    /** The images that fit this controller. */
    kind: word,
    /** The number of the running firmware. A greater number is newer. */
    build,
    /** The running firmware returns to the former one unless the host keeps it. */
    trial: flag,
    /** The largest image that fits, in bytes. */
    room: integer(MAX_IMAGE_BYTES),
    /** The image that the free slot contains, and the number of its bytes there. Absent without one. */
    sum: sum.optional(),
    at: integer(MAX_IMAGE_BYTES).optional(),
  }),
  // Both ways.
  ACK: z.strictObject({ s: seq }),
  NAK: z.strictObject({ s: seq, why: z.enum(refusals) }),
} as const

/** The owner of a controller (SPEC §8). */
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

/** Frames that the receiver must acknowledge with ACK (or NAK) and that the sender repeats until then. SPEC §4. */
export const acknowledged: ReadonlySet<FrameType> = new Set([
  'HELLO',
  'CMD',
  'QRY',
  'LST',
  'OWN',
  'FWQ',
  'IMG',
  'BLK',
  'USE',
  'KEEP',
  'FW',
  'WELCOME',
  'RES',
  'OPS',
  'END',
  'EVT',
])
