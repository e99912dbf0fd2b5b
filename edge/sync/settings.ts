import {
  defaultsOf,
  duration,
  named,
  prefixed,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'

/** Times in milliseconds; SPEC §3, §5, §8. */
export const syncSettings = {
  /** Between connections. */
  backoff: { firstMs: 500, maxMs: 30_000 },
  hello: prefixed('HELLO', {
    firstMs: duration(3000, 'Time after which a hello to the cloud without an answer is repeated.'),
    maxMs: duration(
      30_000,
      'Maximum time between two hellos. The time doubles with each of them, and half of each pause is random.',
    ),
  }),
  /** A hail, or a message that only a new hello can explain, brings one at most this often. */
  hailMs: 1000,
  /** The longest that the cloud may tell the hub to wait before its next hello. */
  laterMs: 300_000,
  /** A broker that is connected for so long without an answer of the cloud is a problem that the page shows. */
  unansweredMs: 10_000,
  stalledMs: named(
    'LEDGER_STALLED_MS',
    duration(
      180_000,
      'Time without an acknowledgement by the connected cloud after which the hub takes no orders.',
    ),
  ),
  /** How often this is checked. */
  stalledCheckMs: 5_000,
  /** Without any message from the cloud for this long the hub says hello again. */
  quietMs: 60_000,
  heartbeatMs: duration(15_000, 'Time between two heartbeats to the cloud, a tenth more or less.'),
  /** A change of health is reported this long after it began. */
  healthMs: 500,
  /** What is appended within so long goes out together: a commit here and one in the cloud for all of it. */
  lingerMs: 20,
  /** After `askMs` of silence about what was sent the hub says hello again, to hear where the cloud stands. */
  ledger: { batchEntries: 1000, askMs: 10_000, maxAskMs: 60_000 },
  telemetry: { batchEntries: 1000, askMs: 20_000, maxAskMs: 60_000 },
  /** Bytes ahead of the acknowledgement; they grow with what is acknowledged within `promptMs`. */
  stream: { windowBytes: 64 * 1024, maxWindowBytes: 2 * 1024 * 1024, promptMs: 1000 },
  /** Bytes of entries in one batch. */
  batchBytes: 480 * 1024,
  /** Characters of a message from the cloud; longer ones are dropped. */
  maxMessage: 1024 * 1024,
} satisfies SettingsTable

export type SyncSettings = SettingsOf<typeof syncSettings>
export const defaultSyncSettings: SyncSettings = defaultsOf(syncSettings)
