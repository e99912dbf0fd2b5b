import { z } from 'zod'
import { HubHealth } from '../model/hub-health.ts'
import { LastCrash, Vitals } from '../model/vitals.ts'

/** 128 random bits in hexadecimal. */
export const Hex128 = z.string().regex(/^[0-9a-f]{32}$/)
/**
 * Identifies an entry in addition to its sequence number: 32 random bits. `stream/receiver.ts` uses it to detect forks.
 */
export const Tag = z.int().min(0).max(0xffffffff)
export const Seq = z.int().min(0)
/**
 * An order's id (UUIDv7) at cloud and hub. Its number comes from the cloud's database, which may assign it again after
 * a restore.
 */
export const OrderId = z.uuid()

/** The position of a stream's sender. `base` is the last acknowledged entry (0: none), `last` the newest. */
export const SenderPosition = z.object({ epoch: Hex128, base: Seq, baseTag: Tag, last: Seq })
export type SenderPosition = z.infer<typeof SenderPosition>

/** The position of a stream's receiver: the last applied entry. `epoch` is null if it has never received an entry. */
export const ReceiverPosition = z.object({ epoch: Hex128.nullable(), cursor: Seq, tag: Tag })
export type ReceiverPosition = z.infer<typeof ReceiverPosition>

/** The progress of a hub's updater with the release of a rollout (SPEC §12). */
export const UpdateReport = z.object({
  version: z.string().max(64),
  rollout: z.uuid(),
  /** `waiting`: an order is in progress. `failed`: refused, or given up for the former version. */
  state: z.enum(['downloading', 'waiting', 'confirming', 'succeeded', 'failed']),
  error: z.string().max(500).optional(),
})
export type UpdateReport = z.infer<typeof UpdateReport>

/**
 * Hub → cloud, first on every connection. The hub repeats it with a back-off until the welcome arrives, on a `hail`,
 * and after it has begun a new epoch. Within one session the hello with the latest `clock.monotonic` holds.
 */
export const Hello = z.object({
  protocol: z.int().positive(),
  /** Created for each connection; commands carry it (I2). */
  session: Hex128,
  /**
   * Created at each start of the hub's service. Two running hubs thus have different ones (SPEC §3). Absent before
   * version 3.
   */
  instance: Hex128.optional(),
  software: z.string().max(64),
  ledger: SenderPosition,
  telemetry: SenderPosition,
  inbox: ReceiverPosition,
  /** What became of the desired state (SPEC §12). Absent if the hub has received none. */
  desired: z
    .object({
      /** The version that the hub uses; null before the first. */
      applied: z.int().min(1).nullable(),
      /** The version that the hub tried last and left again, and the reason. */
      failed: z.object({ version: z.int().min(1), error: z.string().max(500) }).nullable(),
      /** The update in progress, or the last one. */
      update: UpdateReport.optional(),
    })
    .optional(),
  /** The hub can move to another cell. Absent from an older hub. */
  can_move: z.boolean().optional(),
  /** The hub's clocks when it sent the hello, in milliseconds. */
  clock: z.object({ wall: z.number(), monotonic: z.number() }),
})
export type Hello = z.infer<typeof Hello>

/** The cloud's clock when it sent the message, in milliseconds. */
export const CloudTime = z.object({ wall: z.number() })
export type CloudTime = z.infer<typeof CloudTime>

/** Cloud → hub, the answer to `hello`. */
export const Welcome = z.object({
  protocol: z.int().positive(),
  /** The session that it answers; a hub ignores a welcome to any other session. */
  session: Hex128,
  /**
   * `clock.monotonic` of the answered hello. A hub accepts a welcome to any hello of its session that it sent after the
   * last answered one.
   */
  answers: z.number(),
  /**
   * The cloud's cursor of the hub's ledger. `restart` requests a new epoch with a snapshot. `left`: the cloud has
   * followed another epoch of the hub and may know better (SPEC §4).
   */
  ledger: ReceiverPosition.extend({ restart: z.boolean(), left: z.boolean() }),
  telemetry: ReceiverPosition,
  /** The cloud's own sender. If the hub's inbox has another epoch, the hub follows this one from 0. */
  outbox: SenderPosition,
  clock: CloudTime,
})
export type Welcome = z.infer<typeof Welcome>

/**
 * Cloud → hub: requests a hello, whatever the session (at most once a second). The cloud sends it when a message names
 * a session that it does not know, for example after a process died (SPEC §4).
 */
export const Hail = z.object({
  /** The session that the cloud follows, if any. */
  session: Hex128.nullable(),
})
export type Hail = z.infer<typeof Hail>

/**
 * Cloud → hub: rejects a hello with a retry-after, because many hubs have connected at the same time. The hub sends its
 * next hello after `after_ms`, not earlier.
 */
export const Later = z.object({ session: Hex128, after_ms: z.int().min(0) })
export type Later = z.infer<typeof Later>

/**
 * Retained; with `online: false` it is also the connection's will. Only a hint, except `goodbye`: the hub's service
 * stops normally, so the hub is offline at once. A will never has `goodbye`.
 */
export const Presence = z.object({
  session: Hex128,
  online: z.boolean(),
  goodbye: z.literal(true).optional(),
})
export type Presence = z.infer<typeof Presence>

/** Hub → cloud, every 15 s and soon after a change of its content. The last one holds. */
export const Heartbeat = z.object({
  session: Hex128,
  /** The hub's monotonic clock. The cloud uses it to compute when a command expires (SPEC §6). */
  monotonic: z.number(),
  health: HubHealth,
  /** In the first heartbeat of a session, after a noticeable change, and every five minutes. Since version 11. */
  vitals: Vitals.extend({ last_crash: LastCrash.nullable() }).optional(),
})
export type Heartbeat = z.infer<typeof Heartbeat>

/**
 * Hub → cloud, in place of hello and heartbeat, if the hub cannot read its journal and so does not know the positions
 * of its streams. The cloud does not answer (SPEC §3). Since version 11.
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

/** A hub asks for its next certificate, or only compares the authorities that it trusts with those of the cloud (SPEC §2). */
export const CertificateRequest = z.object({
  /** PKCS #10, PEM. */
  csr: z.string().max(8192).optional(),
  /** SHA-256 of the authorities that the hub trusts, hexadecimal. Absent from an older hub. */
  ca: z.string().max(64).optional(),
})
export type CertificateRequest = z.infer<typeof CertificateRequest>

/** Maximum number of characters of the authorities that a hub trusts, PEM. */
export const MAX_AUTHORITIES = 262_144

/** The cloud's answer. PEM. */
export const CertificateAnswer = z.object({
  /** The hub's next certificate. The former one stays valid until its end. */
  certificate: z.string().max(8192).optional(),
  /** The authorities that the hub must trust, if they differ from those that it reported. */
  ca: z.string().max(MAX_AUTHORITIES).optional(),
})
export type CertificateAnswer = z.infer<typeof CertificateAnswer>

/**
 * Cloud → hub in service: move to another cell, where the hub has this number and this claim code (SPEC §2). A retired hub that has
 * not left enrols there again.
 */
export const NextCell = z.object({
  /** Another number for each order of the operator. */
  order: z.int(),
  cloud: z.url({ protocol: /^https?$/ }).max(500),
  hub_id: z.int().min(1).max(9_999_999_999),
  code: z.string().min(1).max(32),
})
export type NextCell = z.infer<typeof NextCell>

/** Maximum length of the reason of a failed move. */
export const MAX_ERROR = 300

/**
 * Hub → cloud: it is enrolled in the other cell with the number `hub_id`, and waits for the order to leave. With `error` it could
 * not do that, and nothing has changed. With `order` 0 a retired hub reports why it cannot leave yet.
 */
export const Moved = z.object({
  order: z.int(),
  hub_id: z.int().min(1),
  error: z.string().max(MAX_ERROR).optional(),
})
export type Moved = z.infer<typeof Moved>

/**
 * Cloud → hub: a retired or revoked board must erase its secrets. `next`: it has this number in the other cell, and continues
 * there.
 */
export const Erase = z.object({ next: z.int().min(1).optional() })
export type Erase = z.infer<typeof Erase>

/** Hub → cloud: it has (SPEC §2). */
export const Erased = z.object({})

/** A batch of contiguous entries of one stream, in either direction. `Body` is validated for each entry (I8). */
export const Batch = z.object({
  epoch: Hex128,
  /** The sequence number of `entries[0]`. */
  first: Seq.min(1),
  /** The tag of entry `first - 1` (0 for the first of an epoch). */
  previousTag: Tag,
  /** The oldest entry that the sender still stores; a lossy stream may begin there (SPEC §5). */
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
  /**
   * The tag of the entry at the cursor; 0 before the first. If the sender has another tag there, it deletes nothing.
   */
  tag: Tag,
  /** Entries after the cursor are missing: the sender must send again from there. */
  resend: z.boolean(),
  /** The receiver's history differs from the sender's: the sender must begin a new epoch. */
  fork: z.boolean(),
  /** From the cloud only (SPEC §4). */
  clock: CloudTime.optional(),
})
export type Ack = z.infer<typeof Ack>
