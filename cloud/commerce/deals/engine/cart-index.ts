import type { CartLine } from './deal.ts'

/** Lines of a cart, by their indices, in the orders in which deals take units from them. */
export interface LineGroup {
  units: number
  inCart: readonly number[]
  /** For equal prices in the order of the cart, as in `dearest`. */
  cheapest: readonly number[]
  /** Those of `cheapest` with a price above 0. */
  priced: readonly number[]
  dearest: readonly number[]
}

/** Lines of a cart by product and by category: a deal touches only the lines that it names. */
export interface CartIndex {
  all: LineGroup
  quantities: readonly number[]
  ofProduct: (id: number) => LineGroup
  ofCategory: (id: number) => LineGroup
}

const emptyGroup = () => ({
  units: 0,
  inCart: [] as number[],
  cheapest: [] as number[],
  priced: [] as number[],
  dearest: [] as number[],
})

const NO_LINES: LineGroup = emptyGroup()

/** An index is made once for the lines of a cart, because every deal of the hub uses it. */
const known = new WeakMap<readonly CartLine[], CartIndex>()

export function indexOf(lines: readonly CartLine[]): CartIndex {
  const index = known.get(lines) ?? makeIndex(lines)
  known.set(lines, index)
  return index
}

function makeIndex(lines: readonly CartLine[]): CartIndex {
  const indices = lines.map((_, index) => index)
  const price = (index: number): number => lines[index]!.unitPrice
  const cheapest = indices.toSorted((a, b) => price(a) - price(b) || a - b)
  const all: LineGroup = {
    units: lines.reduce((sum, { quantity }) => sum + quantity, 0),
    inCart: indices,
    cheapest,
    priced: cheapest.filter((index) => price(index) > 0),
    dearest: indices.toSorted((a, b) => price(b) - price(a) || a - b),
  }
  const products = grouped(lines, all, ({ productId }) => [productId])
  const categories = grouped(lines, all, ({ categoryIds }) => categoryIds)
  return {
    all,
    quantities: lines.map(({ quantity }) => quantity),
    ofProduct: (id) => products.get(id) ?? NO_LINES,
    ofCategory: (id) => categories.get(id) ?? NO_LINES,
  }
}

function grouped(
  lines: readonly CartLine[],
  all: LineGroup,
  keysOf: (line: CartLine) => readonly number[],
): Map<number, LineGroup> {
  const groups = new Map<number, ReturnType<typeof emptyGroup>>()
  for (const order of ['inCart', 'cheapest', 'priced', 'dearest'] as const)
    for (const index of all[order])
      for (const key of new Set(keysOf(lines[index]!))) {
        const group = groups.get(key) ?? emptyGroup()
        groups.set(key, group)
        group[order].push(index)
        if (order === 'inCart') group.units += lines[index]!.quantity
      }
  return groups
}
