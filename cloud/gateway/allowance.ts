import type { CloudContext } from '../platform/context.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'

export interface AllowancePorts {
  context: CloudContext
  settings: Pick<GatewayLimits, 'entriesAtOnce' | 'entriesPerMinute'>
  hubId: number
}

/**
 * The share of one stream of a hub in what the cloud writes: `entriesAtOnce`, and `entriesPerMinute` in the long run. A hub
 * that was offline for long has its entries applied at once; one that runs wild, or whose identity is stolen, fills the
 * database at a bounded pace. What is not applied stays with the hub, which sends it again.
 */
export class Allowance {
  readonly #ports: AllowancePorts
  #left: number
  /** Monotonic milliseconds. */
  #at: number
  /** The newest entry that counted, with its epoch: a repetition costs nothing. */
  #counted: { epoch: string; through: number } | undefined

  constructor(ports: AllowancePorts) {
    this.#ports = ports
    this.#left = ports.settings.entriesAtOnce
    this.#at = ports.context.runtime.clock.monotonic()
  }

  /** Whether a further batch may be applied; it may be larger than what is left. */
  isOpen(): boolean {
    const { context, settings, hubId } = this.#ports
    const now = context.runtime.clock.monotonic()
    const more = ((now - this.#at) * settings.entriesPerMinute) / 60_000
    this.#left = Math.min(settings.entriesAtOnce, this.#left + more)
    this.#at = now
    if (this.#left >= 1) return true
    context.log.warn({ hubId }, 'the hub sends more entries than it may (GATEWAY_ENTRIES_PER_MINUTE)')
    return false
  }

  /** Entries `first` … `through` of an epoch are applied. */
  spend(epoch: string, first: number, through: number): void {
    const counted = this.#counted?.epoch === epoch ? this.#counted.through : first - 1
    this.#left -= Math.max(0, through - Math.max(counted, first - 1))
    this.#counted = { epoch, through: Math.max(counted, through) }
  }
}
