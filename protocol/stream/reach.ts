import type { SenderLimits, SentBatch } from './sender.ts'

/** After this number of consecutive connections without an acknowledgement, one entry is sent at a time. */
const DEAD_CONNECTIONS = 2
/** An acknowledged batch of this size proves that the path carries full-size packets. */
const PROOF_BYTES = 16 * 1024
/** How long one entry is sent at a time after larger batches ended a connection. */
const HOLD_MS = 5 * 60_000

/**
 * Limits the batches on a path that may drop large packets, as some mobile networks and tunnels do. Such a path carries
 * hellos and heartbeats, but no batch. After two connections without an acknowledgement, a connection begins with one
 * entry at a time. Each acknowledgement lets the window grow again. If a connection then ends with an unacknowledged
 * entry, the window does not grow for five minutes. Pure: times are on the caller's monotonic clock.
 */
export class Reach {
  #dead = 0
  #isSlow = false
  #heldUntilMs = -Infinity
  #isAcked = false

  /** The present limits. */
  limits(usual: SenderLimits, nowMs: number): SenderLimits {
    if (!this.#isSlow) return usual
    // A window of one byte admits one batch of one entry.
    const maxWindowBytes = nowMs < this.#heldUntilMs ? 1 : usual.maxWindowBytes
    return { ...usual, windowBytes: 1, maxWindowBytes }
  }

  /** A new connection begins to carry batches. */
  connected(): void {
    this.#isAcked = false
  }

  /** The receiver has acknowledged progress. `bytes`: the size of the largest acknowledged batch. */
  acked(bytes: number): void {
    this.#dead = 0
    this.#isAcked = true
    if (bytes >= PROOF_BYTES) this.#isSlow = false
  }

  /** The connection has ended. `isWaiting`: an entry was sent and not acknowledged. */
  ended(isWaiting: boolean, nowMs: number): void {
    if (!isWaiting) return
    if (this.#isSlow) {
      if (this.#isAcked) this.#heldUntilMs = nowMs + HOLD_MS
      return
    }
    this.#dead = this.#isAcked ? 0 : this.#dead + 1
    if (this.#dead >= DEAD_CONNECTIONS) this.#isSlow = true
  }
}

/** The size of the largest batch up to this entry, in bytes. */
export const bytesOfLargest = (outstanding: readonly SentBatch[], through: number): number =>
  Math.max(0, ...outstanding.filter(({ last }) => last <= through).map(({ bytes }) => bytes))
