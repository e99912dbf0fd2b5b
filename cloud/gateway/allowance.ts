/** How many entries of a hub are applied. */
export interface AllowanceRules {
  /** So many at once. */
  entriesAtOnce: number
  /** So many a minute in the long run. */
  entriesPerMinute: number
}

/**
 * The share of a hub in what the cloud writes. A hub that was offline for long has its entries applied at once; one that runs
 * wild, or whose identity is stolen, fills the database at a bounded pace. What is not applied stays with the hub, which sends
 * it again. Times are monotonic milliseconds.
 */
export class Allowance {
  readonly #rules: AllowanceRules
  #left: number
  #at: number

  constructor(rules: AllowanceRules, now: number) {
    this.#rules = rules
    this.#left = rules.entriesAtOnce
    this.#at = now
  }

  /** Takes entries from it. False, and nothing is taken, if none are left; a last batch may be larger than what is left. */
  take(entries: number, now: number): boolean {
    const { entriesAtOnce, entriesPerMinute } = this.#rules
    this.#left = Math.min(entriesAtOnce, this.#left + ((now - this.#at) * entriesPerMinute) / 60_000)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= entries
    return true
  }
}
