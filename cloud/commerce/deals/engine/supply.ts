/**
 * Units by line, which are taken line after line. For each order of lines it remembers the first line with units, so
 * that many requests in the same order pass each used line once.
 */
export class Supply {
  readonly left: number[]
  readonly #first = new Map<readonly number[], number>()

  constructor(units: readonly number[]) {
    this.left = units.slice()
  }

  /** Takes up to `wanted` units, line after line in the given order. Returns the number of missing units. */
  take(order: readonly number[], wanted: number): number {
    let missing = wanted
    let place = this.#first.get(order) ?? 0
    while (place < order.length) {
      const line = order[place]!
      const units = this.left[line]!
      if (units > missing) {
        this.left[line] = units - missing
        missing = 0
        break
      }
      this.left[line] = 0
      missing -= units
      place += 1
      if (missing === 0) break
    }
    this.#first.set(order, place)
    return missing
  }
}
