import type { Clock } from '../../protocol/model/runtime.ts'
import { TokenBucket } from '../platform/limits/token-bucket.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'

export type MessageLimits = Pick<
  GatewayLimits,
  'messagesAtOnce' | 'messagesPerMinute' | 'messageBytesAtOnce' | 'messageBytesPerMinute'
>

/**
 * The messages and bytes that one hub may send, over all its connections. The embedded broker reads a hub above its
 * allowance later (`packet-gate.ts`). A message through an external broker is dropped, and the hub sends it again.
 */
export class MessageAllowance {
  readonly #messages: TokenBucket
  readonly #bytes: TokenBucket
  readonly #refuse: () => void

  constructor(clock: Clock, limits: MessageLimits, refuse: () => void) {
    const { messagesAtOnce, messagesPerMinute, messageBytesAtOnce, messageBytesPerMinute } = limits
    this.#messages = new TokenBucket(clock, { atOnce: messagesAtOnce, perMinute: messagesPerMinute })
    this.#bytes = new TokenBucket(clock, { atOnce: messageBytesAtOnce, perMinute: messageBytesPerMinute })
    this.#refuse = refuse
  }

  /** Time until the next message may enter, in milliseconds. */
  waitMs(): number {
    return Math.max(this.#messages.waitMs(), this.#bytes.waitMs())
  }

  /** Counts a message if it may enter now, and otherwise the refusal. */
  enters(bytes = 0): boolean {
    if (this.waitMs() > 0) {
      this.#refuse()
      return false
    }
    this.#messages.spend(1)
    this.#bytes.spend(bytes)
    return true
  }

  /** Counts bytes of a message that has entered. */
  spendBytes(bytes: number): void {
    this.#bytes.spend(bytes)
  }
}

/** The allowance of each hub that has sent something. */
export class MessageAllowances {
  readonly #ports: { clock: Clock; limits: MessageLimits; refusals: CloudRefusals }
  readonly #byHub = new Map<number, MessageAllowance>()

  constructor(ports: { clock: Clock; limits: MessageLimits; refusals: CloudRefusals }) {
    this.#ports = ports
  }

  of(hubId: number): MessageAllowance {
    const known = this.#byHub.get(hubId)
    if (known) return known
    const { clock, limits, refusals } = this.#ports
    const why = 'sends more than it may (GATEWAY_MESSAGES_PER_MINUTE, GATEWAY_MESSAGE_BYTES_PER_MINUTE)'
    const allowance = new MessageAllowance(clock, limits, () =>
      refusals.note('hub_message', `hub-${hubId}`, { why }),
    )
    this.#byHub.set(hubId, allowance)
    return allowance
  }
}
