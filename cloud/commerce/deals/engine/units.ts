import type { CartLine } from './deal.ts'

/** Units of a cart: how many of each line. */
export type Units = readonly number[]

export const noUnits = (lines: readonly unknown[]): number[] => lines.map(() => 0)
export const countOf = (units: Units): number => units.reduce((sum, count) => sum + count, 0)

export const plus = (a: Units, b: Units): number[] => a.map((count, index) => count + b[index]!)
export const minus = (a: Units, b: Units): number[] => a.map((count, index) => count - b[index]!)
export const least = (a: Units, b: Units): number[] => a.map((count, index) => Math.min(count, b[index]!))

/** Takes up to `count` units, line after line in the order given. */
export function take(from: Units, order: readonly number[], count: number): number[] {
  const taken = noUnits(from)
  let wanted = count
  for (const index of order) {
    taken[index] = Math.min(wanted, from[index]!)
    wanted -= taken[index]
  }
  return taken
}

/** Indices of the lines that fit, cheapest first; of the same price the first in the cart. */
export const cheapestFirst = (
  lines: readonly CartLine[],
  fits: (line: CartLine) => boolean = () => true,
): number[] =>
  lines
    .flatMap((line, index) => (fits(line) ? [index] : []))
    .sort((a, b) => lines[a]!.unitPrice - lines[b]!.unitPrice || a - b)

/** The greatest of 0…`most` for which something holds that holds for 0 and, once it does not, never again. */
export function greatest(most: number, holds: (n: number) => boolean): number {
  let known = 0
  let beyond = most + 1
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2)
    if (holds(middle)) known = middle
    else beyond = middle
  }
  return known
}

/**
 * Splits a whole amount over weights: each part is its share rounded down, and what is left goes, one each, to the greatest
 * remainders (of equal ones the first). The parts' sum is exactly the amount, and an amount no greater than the weights'
 * sum gives no part above its weight. All integers, not negative.
 */
export function splitByLargestRemainder(amount: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total === 0) {
    if (amount !== 0) throw new RangeError('nothing to split an amount over')
    return weights.map(() => 0)
  }
  // In exact integers: the products of two sums of cents do not fit a number.
  const shares = weights.map((weight) => {
    const product = BigInt(amount) * BigInt(weight)
    return { part: Number(product / BigInt(total)), remainder: Number(product % BigInt(total)) }
  })
  const left = amount - shares.reduce((sum, { part }) => sum + part, 0)
  const byRemainder = shares.map((_, index) => index)
  byRemainder.sort((a, b) => shares[b]!.remainder - shares[a]!.remainder || a - b)
  const rounded = new Set(byRemainder.slice(0, left))
  return shares.map(({ part }, index) => part + (rounded.has(index) ? 1 : 0))
}
