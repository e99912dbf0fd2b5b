import type { CartLine } from './deal.ts'

/** Units of a cart: a number for each line. */
export type Units = readonly number[]

export const noUnits = (lines: readonly unknown[]): number[] => lines.map(() => 0)
export const countOf = (units: Units): number => units.reduce((sum, count) => sum + count, 0)

export const plus = (a: Units, b: Units): number[] => a.map((count, index) => count + b[index]!)
export const minus = (a: Units, b: Units): number[] => a.map((count, index) => count - b[index]!)
export const least = (a: Units, b: Units): number[] => a.map((count, index) => Math.min(count, b[index]!))

/** Takes up to `count` units, line after line in the given order. */
export function take(from: Units, order: readonly number[], count: number): number[] {
  const taken = noUnits(from)
  let wanted = count
  for (const index of order) {
    taken[index] = Math.min(wanted, from[index]!)
    wanted -= taken[index]
  }
  return taken
}

/** Indices of the matching lines, cheapest first; for equal prices in the order of the cart. */
export const cheapestFirst = (
  lines: readonly CartLine[],
  fits: (line: CartLine) => boolean = () => true,
): number[] =>
  lines
    .flatMap((line, index) => (fits(line) ? [index] : []))
    .sort((a, b) => lines[a]!.unitPrice - lines[b]!.unitPrice || a - b)

/**
 * The greatest number of 0…`most` for which a condition holds. The condition must hold for 0, and never again after it
 * fails.
 */
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
 * Splits an integer amount by weights. Each part is its share rounded down; the remaining units go one each to the
 * largest remainders (of equal ones the first). The sum of the parts is exactly the amount. If the amount is at most
 * the sum of the weights, no part exceeds its weight. All values are non-negative integers.
 */
export function splitByLargestRemainder(amount: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total === 0) {
    if (amount !== 0) throw new RangeError('nothing to split an amount over')
    return weights.map(() => 0)
  }
  // In exact integers, because the products exceed the range of exact numbers.
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
