import type { Random } from '../../protocol/model/runtime.ts'

/** Reproducible chance (mulberry32) for a simulator that was started with a seed. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  return {
    fraction: () => next() / 2 ** 32,
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
  }
}
