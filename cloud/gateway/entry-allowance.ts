import { TokenBucket } from '../platform/limits/token-bucket.ts'
import type { CloudContext } from '../platform/context.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'

interface EntryAllowancePorts {
  context: CloudContext
  refusals: CloudRefusals
  settings: Pick<
    GatewayLimits,
    'entriesAtOnce' | 'entriesPerMinute' | 'entryBytesAtOnce' | 'entryBytesPerMinute'
  >
  hubId: number
}

/**
 * Limits how much one stream of a hub writes to the database: entries, and bytes as they arrive. A hub that was offline
 * for long can deliver its backlog at once. A faulty or stolen hub fills the database at a bounded rate. Entries above
 * the limit stay at the hub, which sends them again.
 */
export class EntryAllowance {
  readonly #ports: EntryAllowancePorts
  readonly #entries: TokenBucket
  readonly #bytes: TokenBucket
  /** The newest counted entry with its epoch, so that a repetition costs nothing. */
  #counted: { epoch: string; through: number } | undefined

  constructor(ports: EntryAllowancePorts) {
    this.#ports = ports
    const { entriesAtOnce, entriesPerMinute, entryBytesAtOnce, entryBytesPerMinute } = ports.settings
    const { clock } = ports.context.runtime
    this.#entries = new TokenBucket(clock, { atOnce: entriesAtOnce, perMinute: entriesPerMinute })
    this.#bytes = new TokenBucket(clock, { atOnce: entryBytesAtOnce, perMinute: entryBytesPerMinute })
  }

  /** Whether another batch may be applied. The batch may exceed the remaining allowance. */
  isOpen(): boolean {
    if (Math.max(this.#entries.waitMs(), this.#bytes.waitMs()) === 0) return true
    const { refusals, hubId } = this.#ports
    const why = 'sends more entries than it may (GATEWAY_ENTRIES_PER_MINUTE, GATEWAY_ENTRY_BYTES_PER_MINUTE)'
    refusals.note('hub_message', `hub-${hubId}`, { why })
    return false
  }

  /** Counts the applied entries `first` … `through` of an epoch, which arrived in a batch of `bytes`. */
  spend(epoch: string, first: number, through: number, bytes: number): void {
    const counted = this.#counted?.epoch === epoch ? this.#counted.through : first - 1
    const applied = Math.max(0, through - Math.max(counted, first - 1))
    this.#entries.spend(applied)
    if (applied > 0) this.#bytes.spend(bytes)
    this.#counted = { epoch, through: Math.max(counted, through) }
  }
}
