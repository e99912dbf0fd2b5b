import type { Clock } from '../../../protocol/model/runtime.ts'

export interface BucketLimits {
  /** The amount at the start, and the most that is saved. */
  atOnce: number
  perMinute: number
}

/** An amount that is spent and refilled. One expense may exceed what is left; the next one waits for it. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #limits: BucketLimits
  #left: number
  /** Time of the last refill, in monotonic milliseconds. */
  #at: number

  constructor(clock: Pick<Clock, 'monotonic'>, limits: BucketLimits) {
    this.#clock = clock
    this.#limits = limits
    this.#left = limits.atOnce
    this.#at = clock.monotonic()
  }

  /** Time until something is left, in milliseconds. */
  waitMs(): number {
    const { atOnce, perMinute } = this.#limits
    const now = this.#clock.monotonic()
    this.#left = Math.min(atOnce, this.#left + ((now - this.#at) * perMinute) / 60_000)
    this.#at = now
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) * 60_000) / perMinute)
  }

  spend(amount: number): void {
    this.#left -= amount
  }
}
