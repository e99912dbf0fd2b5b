import type { Hello } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import { TokenBucket } from '../platform/limits/token-bucket.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'

export type EpochLimits = Pick<GatewayLimits, 'epochsAtOnce' | 'epochsPerHour'>

interface Followed {
  bucket: TokenBucket
  /** The epochs of the latest hello. */
  epochs: string
}

/** Limits how often a hub begins other epochs of its streams: the database keeps a row of each. */
export class EpochAllowance {
  readonly #parts: { context: CloudContext; refusals: CloudRefusals }
  readonly #limits: EpochLimits
  readonly #byHub = new Map<number, Followed>()

  constructor(parts: { context: CloudContext; refusals: CloudRefusals }, limits: EpochLimits) {
    this.#parts = parts
    this.#limits = limits
  }

  /** Whether the hello may be answered. */
  admits(hubId: number, { ledger, telemetry }: Hello): boolean {
    const epochs = `${ledger.epoch} ${telemetry.epoch}`
    const followed = this.#byHub.get(hubId) ?? { bucket: this.#newBucket(), epochs: '' }
    this.#byHub.set(hubId, followed)
    if (followed.epochs === epochs) return true
    if (followed.bucket.waitMs() > 0) {
      const why = 'begins other epochs more often than it may (GATEWAY_EPOCHS_PER_HOUR)'
      this.#parts.refusals.note('hub_message', `hub-${hubId}`, { why })
      return false
    }
    followed.bucket.spend(1)
    followed.epochs = epochs
    return true
  }

  #newBucket(): TokenBucket {
    const { epochsAtOnce: atOnce, epochsPerHour } = this.#limits
    return new TokenBucket(this.#parts.context.runtime.clock, { atOnce, perMinute: epochsPerHour / 60 })
  }
}
