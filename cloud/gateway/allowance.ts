import type { CloudContext } from '../platform/context.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'

export interface AllowancePorts {
  context: CloudContext
  settings: Pick<GatewayLimits, 'entriesAtOnce' | 'entriesPerMinute'>
  hubId: number
}

/**
 * Limits how much one stream of a hub writes to the database: a burst of `entriesAtOnce`, and `entriesPerMinute` on
 * average. A hub that was offline for long can deliver its backlog at once. A faulty or stolen hub fills the database
 * at a bounded rate. Entries above the limit stay at the hub, which sends them again.
 */
export class Allowance {
  readonly #ports: AllowancePorts
  #left: number
  /** Time of the last update, in monotonic milliseconds. */
  #at: number
  /** The newest counted entry with its epoch, so that a repetition costs nothing. */
  #counted: { epoch: string; through: number } | undefined

  constructor(ports: AllowancePorts) {
    this.#ports = ports
    this.#left = ports.settings.entriesAtOnce
    this.#at = ports.context.runtime.clock.monotonic()
  }

  /** Whether another batch may be applied. The batch may exceed the remaining allowance. */
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

  /** Counts the applied entries `first` … `through` of an epoch. */
  spend(epoch: string, first: number, through: number): void {
    const counted = this.#counted?.epoch === epoch ? this.#counted.through : first - 1
    this.#left -= Math.max(0, through - Math.max(counted, first - 1))
    this.#counted = { epoch, through: Math.max(counted, through) }
  }
}
