import type { SenderLimits, SentBatch } from './sender.ts'

/** Connections in a row that ended without any acknowledgement, after which one entry is sent at a time. */
const DEAD_CONNECTIONS = 2
/** A batch of so many bytes that was acknowledged proves that the path carries full-size packets. */
const PROOF_BYTES = 16 * 1024
/** After larger batches ended a connection, one entry at a time is sent for this long. */
const HOLD_MS = 5 * 60_000

/**
 * How much a sender sends at once on a path that may drop large packets (some mobile networks and tunnels do). Such a path
 * carries a hello and heartbeats, and no batch. After two connections without an acknowledgement a connection begins with one
 * entry at a time; each acknowledgement lets the window grow again. If a connection then ends with something unacknowledged,
 * the window does not grow for five minutes. Pure: times are on the caller's monotonic clock.
 */
export class Reach {
  #dead = 0
  #isSlow = false
  #heldUntilMs = -Infinity
  #isAcked = false

  /** The limits that hold now. */
  limits(usual: SenderLimits, nowMs: number): SenderLimits {
    if (!this.#isSlow) return usual
    // A window of one byte holds one batch, of one entry.
    const maxWindowBytes = nowMs < this.#heldUntilMs ? 1 : usual.maxWindowBytes
    return { ...usual, windowBytes: 1, maxWindowBytes }
  }

  /** A new connection carries batches from here on. */
  begun(): void {
    this.#isAcked = false
  }

  /** The other side has acknowledged progress. `bytes`: of the largest batch of it. */
  acked(bytes: number): void {
    this.#dead = 0
    this.#isAcked = true
    if (bytes >= PROOF_BYTES) this.#isSlow = false
  }

  /** The connection has ended. `isWaiting`: something was sent and not acknowledged. */
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

/** The bytes of the largest batch through this entry. */
export const bytesOfLargest = (outstanding: readonly SentBatch[], through: number): number =>
  Math.max(0, ...outstanding.filter(({ last }) => last <= through).map(({ bytes }) => bytes))
