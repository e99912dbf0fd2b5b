import type { BackoffOptions } from '../../protocol/model/runtime.ts'
import type { SenderLimits } from '../../protocol/stream/sender.ts'

/** Times in milliseconds; SPEC §3, §5, §8. */
export interface SyncSettings {
  /** Between connections. */
  backoff: BackoffOptions
  /** An unanswered hello is repeated after this long. */
  helloMs: number
  /** A hail, or a message that only a new hello can explain, brings one at most this often. */
  hailMs: number
  /** Without any message from the cloud for this long the hub says hello again. */
  quietMs: number
  heartbeatMs: number
  /** A change of health is reported this long after it began. */
  healthMs: number
  /** What is appended within so long goes out together: a commit here and one in the cloud for all of it. */
  lingerMs: number
  ledger: SenderLimits
  telemetry: SenderLimits
  /** Timeouts without progress after which the hub says hello again: who acknowledged may have died. */
  stalledRetries: number
  /** Bytes of entries in one batch. */
  batchBytes: number
  /** Characters of a message from the cloud; longer ones are dropped. */
  maxMessage: number
}

export const defaultSyncSettings: SyncSettings = {
  backoff: { firstMs: 500, maxMs: 30_000 },
  helloMs: 3000,
  hailMs: 1000,
  quietMs: 60_000,
  heartbeatMs: 15_000,
  healthMs: 500,
  lingerMs: 20,
  ledger: { batchEntries: 1000, windowEntries: 8000, retryMs: 2000, maxRetryMs: 30_000 },
  telemetry: { batchEntries: 1000, windowEntries: 2000, retryMs: 5000, maxRetryMs: 60_000 },
  stalledRetries: 2,
  batchBytes: 480 * 1024,
  maxMessage: 1024 * 1024,
}
