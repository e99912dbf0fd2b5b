import type { CartLine, Deal } from './deal.ts'

/** What a cart must hold for a deal to take anything off: `product 12`, `category 3`, or nothing of its own. */
export type Need = '' | `product ${number}` | `category ${number}`

/** The narrowest thing that a deal asks for. Each trigger must be met; a single reward on a product takes nothing off others. */
export function needOf({ triggers, rewards }: Pick<Deal, 'triggers' | 'rewards'>): Need {
  const ofUnits = triggers.filter(({ type }) => type === 'QUANTITY' || type === 'CATEGORY')
  const product =
    ofUnits.find(({ productId }) => productId !== null)?.productId ??
    (rewards.length === 1 ? rewards[0]!.productId : null)
  if (product !== null) return `product ${product}`
  const category = ofUnits.find(({ categoryId }) => categoryId !== null)?.categoryId ?? null
  return category === null ? '' : `category ${category}`
}

/** The needs that a cart meets. */
export const needsMetBy = (lines: readonly CartLine[]): Need[] => [
  ...new Set<Need>([
    '',
    ...lines.map(({ productId }): Need => `product ${productId}`),
    ...lines.flatMap(({ categoryIds }) => categoryIds.map((id): Need => `category ${id}`)),
  ]),
]
