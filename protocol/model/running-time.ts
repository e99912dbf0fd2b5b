import type { Clock } from './runtime.ts'

/** The part of a suspension that counts. */
const COUNTED_MS = 1000

/**
 * The time in which a program has run, in milliseconds. A suspension (SIGSTOP, a paused virtual machine) does not count, because
 * the program could receive nothing then. A deadline that ends something because nothing has arrived must be measured with it.
 * Each suspension counts a second, so that a deadline ends even if a machine in trouble shows one after the other.
 *
 * A reading more than `gapMs` after the last one shows a suspension: the program must read it more often.
 */
export class RunningTime {
  readonly #clock: Clock
  readonly #gapMs: number
  #readAt: number
  #suspendedMs = 0
  /** Number of suspensions until the last reading. */
  suspensions = 0

  constructor(clock: Clock, gapMs: number) {
    this.#clock = clock
    this.#gapMs = gapMs
    this.#readAt = clock.monotonic()
  }

  ms(): number {
    const now = this.#clock.monotonic()
    const passedMs = now - this.#readAt
    this.#readAt = now
    if (passedMs > this.#gapMs) {
      this.#suspendedMs += passedMs - COUNTED_MS
      this.suspensions += 1
    }
    return now - this.#suspendedMs
  }
}
