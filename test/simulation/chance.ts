import type { Random } from '../../protocol/model/runtime.ts'

/** Seeded random numbers (sfc32), the only randomness of a simulated run. */
export interface Chance extends Random {
  /** True with probability `p`. */
  happens(p: number): boolean
  /** An integer in [low, high]. */
  between(low: number, high: number): number
  pick<T>(items: readonly T[]): T
  /** An independent stream, so that one part's draws do not shift another's. */
  fork(): Chance
}

export function seededChance(seed: number): Chance {
  let a = 0x9e3779b9 ^ seed
  let b = 0x243f6a88 ^ (seed >>> 16)
  let c = 0xb7e15162
  let counter = 1
  const next = (): number => {
    const sum = (a + b + counter++) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return sum >>> 0
  }
  for (let round = 0; round < 15; round++) next()
  const fraction = (): number => next() / 2 ** 32
  return {
    fraction,
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
    happens: (p) => fraction() < p,
    between: (low, high) => low + Math.floor(fraction() * (high - low + 1)),
    pick: (items) => items[Math.floor(fraction() * items.length)]!,
    fork: () => seededChance(next()),
  }
}
