import type { Clock } from '../../../protocol/model/runtime.ts'
import type { CloudSettings } from '../settings/limits.ts'

export type UploadPace = Pick<CloudSettings, 'uploadPatienceMs' | 'uploadBytesPerSecond'>

/**
 * The time for which an upload still waits for its sender. Waiting uses it up, and each byte that arrives adds to it, up to
 * `uploadPatienceMs`. The upload ends if its sender is silent for that time, or sends fewer than `uploadBytesPerSecond` for
 * long. Time in which the service itself is busy does not count.
 */
export class Patience {
  readonly #clock: Clock
  readonly #pace: UploadPace
  #leftMs: number

  constructor(clock: Clock, pace: UploadPace) {
    this.#clock = clock
    this.#pace = pace
    this.#leftMs = pace.uploadPatienceMs
  }

  get leftMs(): number {
    return this.#leftMs
  }

  /** Waits for the next bytes. */
  async spend<T extends { length: number } | undefined>(arrival: Promise<T>): Promise<T> {
    const begunAt = this.#clock.monotonic()
    const bytes = await arrival
    const waitedMs = this.#clock.monotonic() - begunAt
    const earnedMs = ((bytes?.length ?? 0) / this.#pace.uploadBytesPerSecond) * 1000
    this.#leftMs = Math.min(this.#pace.uploadPatienceMs, this.#leftMs - waitedMs + earnedMs)
    return bytes
  }
}
