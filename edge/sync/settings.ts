import {
  defaultsOf,
  duration,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'

/** Times in milliseconds; SPEC §3, §5, §8. */
export const syncSettings = {
  /** Between connections. */
  backoff: { firstMs: 500, maxMs: 30_000 },
  /** An unanswered hello is repeated after this long. */
  helloMs: 3000,
  /** A hail, or a message that only a new hello can explain, brings one at most this often. */
  hailMs: 1000,
  /** Without any message from the cloud for this long the hub says hello again. */
  quietMs: 60_000,
  heartbeatMs: duration(15_000, 'The heartbeat to the cloud.'),
  /** A change of health is reported this long after it began. */
  healthMs: 500,
  /** What is appended within so long goes out together: a commit here and one in the cloud for all of it. */
  lingerMs: 20,
  ledger: { batchEntries: 1000, windowEntries: 8000, retryMs: 2000, maxRetryMs: 30_000 },
  telemetry: { batchEntries: 1000, windowEntries: 2000, retryMs: 5000, maxRetryMs: 60_000 },
  /** Timeouts without progress after which the hub says hello again: who acknowledged may have died. */
  stalledRetries: 2,
  /** Bytes of entries in one batch. */
  batchBytes: 480 * 1024,
  /** Characters of a message from the cloud; longer ones are dropped. */
  maxMessage: 1024 * 1024,
} satisfies SettingsTable

export type SyncSettings = SettingsOf<typeof syncSettings>
export const defaultSyncSettings: SyncSettings = defaultsOf(syncSettings)
