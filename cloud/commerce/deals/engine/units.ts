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
