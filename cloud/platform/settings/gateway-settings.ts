import type { BackoffOptions } from '../../../protocol/model/runtime.ts'
import type { SenderLimits } from '../../../protocol/stream/sender.ts'

/** Settings of the gateway (SPEC §7, §8). Durations are milliseconds. */
export interface GatewaySettings {
  /** A process that has not heard a hub for so long no longer speaks to it; each heartbeat renews the lease. */
  leaseMs: number
  /** How long another process may take to say that it lives, before its leases are ended. */
  answerMs: number
  /** How often the holder looks into the outboxes of its hubs, as a nudge may be lost. */
  pollMs: number
  /** A command lives so long on the hub's clock. */
  commandTtlMs: number
  /** The outcome of a command that was told and that no ledger has brought after so long is recorded without it. */
  recordResultsMs: number
  /** How long a command waits for a hail to be answered, where this process has not heard the hub's clock yet. */
  hailTimeoutMs: number
  /** The least time between two hails to a hub. */
  hailEveryMs: number
  /** A command whose process died is recorded as `unknown` after this; longer than any command may take. */
  lostCommandMs: number
  sender: SenderLimits
  /** A batch's payload stays below this (bytes of its entries), unless one entry alone is longer. */
  batchBytes: number
  backoff: BackoffOptions
}

export const defaultGatewaySettings: GatewaySettings = {
  leaseMs: 45_000,
  answerMs: 2_000,
  pollMs: 5_000,
  commandTtlMs: 5_000,
  recordResultsMs: 100,
  hailTimeoutMs: 2_000,
  hailEveryMs: 1_000,
  lostCommandMs: 180_000,
  sender: { batchEntries: 500, windowEntries: 2_000, retryMs: 2_000, maxRetryMs: 30_000 },
  batchBytes: 512 * 1024,
  backoff: { firstMs: 250, maxMs: 15_000 },
}
