/** Random numbers that are equal for the same seed (mulberry32): the demo's past is reproducible. */
export interface DemoChance {
  /** A number in [0, 1). */
  fraction(): number
  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number
  pick<T>(items: readonly T[]): T
}

export function demoChance(seed: number): DemoChance {
  let state = seed >>> 0
  function fraction(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number): number => least + Math.floor(fraction() * (most - least + 1))
  return { fraction, between, pick: (items) => items[between(0, items.length - 1)]! }
}
