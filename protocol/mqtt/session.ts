import { z } from 'zod'
import { HubHealth } from '../model/hub-health.ts'

/** 128 random bits in hexadecimal. */
export const Hex128 = z.string().regex(/^[0-9a-f]{32}$/)
/** Identifies one entry beside its sequence number: 32 random bits. See `stream/receiver.ts` on forks. */
export const Tag = z.int().min(0).max(0xffffffff)
export const Seq = z.int().min(0)
/**
 * An order's own id (UUIDv7), by which cloud and hub know it. Its number is the cloud database's, which may give it out a
 * second time after it was restored.
 */
export const OrderId = z.uuid()

/** Where a stream's sender stands. `base` is the last acknowledged entry (0: none), `last` the newest. */
export const SenderPosition = z.object({ epoch: Hex128, base: Seq, baseTag: Tag, last: Seq })
export type SenderPosition = z.infer<typeof SenderPosition>

/** Where a stream's receiver stands: the last applied entry. A null epoch has never received anything. */
export const ReceiverPosition = z.object({ epoch: Hex128.nullable(), cursor: Seq, tag: Tag })
export type ReceiverPosition = z.infer<typeof ReceiverPosition>

/**
 * Hub → cloud, first on every connection; repeated with a back-off until the welcome comes, when a `hail` asks for it, and
 * after the hub has begun a new epoch. Within one session the one with the latest `clock.monotonic` holds.
 */
export const Hello = z.object({
  protocol: z.int().positive(),
  /** Minted for each connection; commands carry it (I2). */
  session: Hex128,
  /** Minted at each start of the hub's service; two that live have two (SPEC §3). Absent before version 3. */
  instance: Hex128.optional(),
  software: z.string().max(64),
  ledger: SenderPosition,
  telemetry: SenderPosition,
  inbox: ReceiverPosition,
  /** The hub's clocks at sending. Milliseconds. */
  clock: z.object({ wall: z.number(), monotonic: z.number() }),
})
export type Hello = z.infer<typeof Hello>

/** The cloud's clock at sending. Milliseconds. */
export const CloudTime = z.object({ wall: z.number() })
export type CloudTime = z.infer<typeof CloudTime>

/** Cloud → hub, the answer to `hello`. */
export const Welcome = z.object({
  protocol: z.int().positive(),
  /** The session it answers; a hub ignores a welcome to another one. */
  session: Hex128,
  /**
   * `clock.monotonic` of the hello it answers. A hub takes a welcome to any hello of its session that was said after the
   * one that was answered last.
   */
  answers: z.number(),
  /**
   * The cloud's cursor of the hub's ledger; `restart` asks the hub for a new epoch with a snapshot, `left` says that the
   * cloud has followed the hub, and does not follow its present one: it may know better (SPEC §4).
   */
  ledger: ReceiverPosition.extend({ restart: z.boolean(), left: z.boolean() }),
  telemetry: ReceiverPosition,
  /** The cloud's own sender. A hub whose inbox has another epoch takes this one up from 0. */
  outbox: SenderPosition,
  clock: CloudTime,
})
export type Welcome = z.infer<typeof Welcome>

/**
 * Cloud → hub: say hello again, whatever session this is (at most once a second). The cloud asks when it hears a hub
 * whose session it does not know, for example after the process that did has died (SPEC §4).
 */
export const Hail = z.object({
  /** The session that the cloud believes in, if any. */
  session: Hex128.nullable(),
})
export type Hail = z.infer<typeof Hail>

/**
 * Cloud → hub: the hello was heard, and cannot be answered yet, as many hubs have come at once. The next one is said after
 * `after_ms`, not before.
 */
export const Later = z.object({ session: Hex128, after_ms: z.int().min(0) })
export type Later = z.infer<typeof Later>

/**
 * Retained, and the connection's will with `online: false`. A hint only, but for `goodbye`: the hub's service stops in good
 * order, so the hub is offline at once. A will never has it.
 */
export const Presence = z.object({
  session: Hex128,
  online: z.boolean(),
  goodbye: z.literal(true).optional(),
})
export type Presence = z.infer<typeof Presence>

/** Hub → cloud, every 15 s and soon after a change of what it says. The last one holds. */
export const Heartbeat = z.object({
  session: Hex128,
  /** The hub's monotonic clock, from which the cloud computes when a command expires (SPEC §6). */
  monotonic: z.number(),
  health: HubHealth,
})
export type Heartbeat = z.infer<typeof Heartbeat>

/**
 * Hub → cloud, in place of hello and heartbeats, from a hub that cannot read its journal: it does not know where its streams
 * stand. The cloud answers nothing (SPEC §3). Since version 11.
 */
export const StorageReport = z.object({
  protocol: z.int().positive(),
  session: Hex128,
  instance: Hex128,
  software: z.string().max(64),
  monotonic: z.number(),
  health: HubHealth.required({ storage: true }),
})
export type StorageReport = z.infer<typeof StorageReport>

/** A batch of contiguous entries of one stream, in either direction. `Body` is validated entry by entry (I8). */
export const Batch = z.object({
  epoch: Hex128,
  /** The sequence number of `entries[0]`. */
  first: Seq.min(1),
  /** The tag of entry `first - 1` (0 for the first of an epoch). */
  previousTag: Tag,
  /** The oldest entry that the sender still has; a lossy stream may begin there (SPEC §5). */
  oldest: Seq.min(1),
  entries: z
    .array(z.object({ tag: Tag, body: z.unknown() }))
    .min(1)
    .max(2000),
  /** From the cloud only (SPEC §4). */
  clock: CloudTime.optional(),
})
export type Batch = z.infer<typeof Batch>

/** The receiver's cumulative acknowledgement, sent after its commit. */
export const Ack = z.object({
  stream: z.enum(['ledger', 'telemetry', 'outbox']),
  epoch: Hex128,
  cursor: Seq,
  /** The tag of the entry at the cursor; 0 before the first. A sender with another one there forgets nothing. */
  tag: Tag,
  /** Something is missing behind the cursor: send again from there. */
  resend: z.boolean(),
  /** The receiver's history is not the sender's: begin a new epoch. */
  fork: z.boolean(),
  /** From the cloud only (SPEC §4). */
  clock: CloudTime.optional(),
})
export type Ack = z.infer<typeof Ack>
