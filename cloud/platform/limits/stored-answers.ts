import type { Axis, Budget, Hold, Holder } from '../../../protocol/model/budget.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { fullError } from './full.ts'

/** Bytes of a row in addition to its answer: key, fingerprint, status, indexes. */
const ROW_BYTES = 400
const HOUR_MS = 3_600_000
const HOURS_KEPT = 24

/**
 * Counts the bytes that a caller stores with idempotency keys within 24 hours (`idempotency_keys`), in this process and
 * since its start. A caller that has used up its share gets 429 before the request is executed.
 */
export class StoredAnswers {
  readonly #clock: Clock
  readonly #budget: Budget
  /** By hour, then by caller. All bytes of an hour are released together. */
  readonly #hours = new Map<number, Map<string, Hold>>()

  constructor(clock: Clock, budget: Budget) {
    this.#clock = clock
    this.#budget = budget
  }

  /** Throws `rate_limit_exceeded` if there is no room for a further row. */
  begin(holder: Holder): void {
    const full = this.#holdOf(holder).grow(ROW_BYTES)
    if (full !== null)
      throw fullError(full, 'answers stored for idempotency keys; leave the key out, or try again later')
  }

  /** Counts the stored bytes, which may use up the share. */
  stored(holder: Holder, bytes: number): void {
    const { shares } = this.#budget.limits
    const left = (Object.entries(shares) as [Axis, number][]).flatMap(([axis, share]) => {
      const name = holder[axis]
      return name === undefined ? [] : [share - this.#budget.usedBy(axis, name)]
    })
    this.#holdOf(holder).grow(Math.min(bytes, ...left))
  }

  #holdOf(holder: Holder): Hold {
    const hour = Math.floor(this.#clock.monotonic() / HOUR_MS)
    for (const [startHour, holds] of this.#hours) {
      if (startHour > hour - HOURS_KEPT) break
      for (const hold of holds.values()) hold.release()
      this.#hours.delete(startHour)
    }
    const holds = this.#hours.get(hour) ?? new Map<string, Hold>()
    this.#hours.set(hour, holds)
    const name = JSON.stringify(holder)
    const hold = holds.get(name) ?? this.#budget.take(holder, { amount: 0 }).hold!
    holds.set(name, hold)
    return hold
  }
}
