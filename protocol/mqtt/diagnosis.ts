import { z } from 'zod'

/** Maximum number of log records of an answer. */
export const MAX_RECORDS = 10_000
/** Maximum size of the log records of an answer, uncompressed. */
export const MAX_LOG_BYTES = 1024 * 1024
/** Maximum size of a diagnostic archive. */
export const MAX_BUNDLE_BYTES = 5 * 1024 * 1024
/** Maximum size of a part. The message is a third larger, and far below the limit of a packet (SPEC §8). */
export const MAX_PART_BYTES = 64 * 1024

/** The content of an answer: the newest log records, or a diagnostic archive (`.tar.gz`). */
export const Diagnosis = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('logs'),
    /** The age of the oldest record in milliseconds. */
    since_ms: z.int().min(0),
    limit: z.int().min(1).max(MAX_RECORDS),
    /** Only records after this cursor of an earlier answer. */
    after: z.string().max(64).optional(),
  }),
  z.object({ kind: z.literal('bundle') }),
])
export type Diagnosis = z.infer<typeof Diagnosis>

/**
 * Cloud → hub: asks for one part of an answer (SPEC §13). It is no command of `model/hub-commands.ts`, for two reasons.
 * The hub journals each command and reports its result in the ledger, so that the card would store each answer twice.
 * A hub that cannot use its journal executes no command, and its log is needed most then.
 */
export const DiagnosisRequest = z.object({
  /** The hub makes one answer for each id, and sends it in parts. */
  request: z.uuid(),
  wanted: Diagnosis,
  /** The first byte of the part, and its maximum size. */
  offset: z.int().min(0),
  bytes: z.int().min(1).max(MAX_PART_BYTES),
})
export type DiagnosisRequest = z.infer<typeof DiagnosisRequest>

/** Hub → cloud: one part of an answer. Log records are lines of JSON, compressed with gzip. */
export const DiagnosisPart = z.object({
  request: z.uuid(),
  offset: z.int().min(0),
  /** Size of the whole answer in bytes. */
  size: z.int().min(0).max(MAX_BUNDLE_BYTES),
  /** Base64. */
  data: z.base64().max(Math.ceil(MAX_PART_BYTES / 3) * 4),
  /** The cursor after the newest log record; absent for an archive. */
  cursor: z.string().max(64).optional(),
})
export type DiagnosisPart = z.infer<typeof DiagnosisPart>
