import type { Budget, Hold, Holder } from '../../../protocol/model/budget.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { fullError } from './full.ts'

const WINDOW_MS = 60_000

/**
 * Processor time that callers have used within a minute, held from a budget. Each hold is released a minute after its
 * work ended.
 */
export class SpentTime {
  readonly #budget: Budget
  readonly #clock: Clock
  /** Holds of ended work, in the order of their ends. */
  readonly #ended: { hold: Hold; until: number }[] = []

  constructor(budget: Budget, clock: Clock) {
    this.#budget = budget
    this.#clock = clock
  }

  /** Starts work of a caller. Throws `rate_limit_exceeded` if the caller's share is used up. */
  begin(holder: Holder): Work {
    this.#giveBack()
    const { hold, full } = this.#budget.take(holder)
    if (full !== undefined) throw fullError(full, 'pictures and videos within a minute')
    return new Work(hold, () => this.#ended.push({ hold, until: this.#clock.monotonic() + WINDOW_MS }))
  }

  #giveBack(): void {
    const now = this.#clock.monotonic()
    let count = 0
    while (count < this.#ended.length && this.#ended[count]!.until <= now) {
      this.#ended[count]!.hold.release()
      count += 1
    }
    this.#ended.splice(0, count)
  }
}

/** Work that spends processor time. */
export class Work {
  readonly #hold: Hold
  readonly #end: () => void
  /** Time below a millisecond that is not counted yet. */
  #rest = 0

  constructor(hold: Hold, end: () => void) {
    this.#hold = hold
    this.#end = end
  }

  /** Counts milliseconds. Throws `rate_limit_exceeded` if the caller's share is used up. */
  spent(ms: number): void {
    this.#rest += ms
    const whole = Math.floor(this.#rest)
    if (whole === 0) return
    this.#rest -= whole
    const full = this.#hold.grow(whole)
    if (full !== null) throw fullError(full, 'pictures and videos within a minute')
  }

  end(): void {
    this.#end()
  }
}
