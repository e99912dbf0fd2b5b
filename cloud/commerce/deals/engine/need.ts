import type { CartLine, Deal } from './deal.ts'

/**
 * The content that a cart must have before a deal can save anything: `product 12`, `category 3`, or nothing special.
 */
export type Need = '' | `product ${number}` | `category ${number}`

/**
 * The narrowest need of a deal. Each trigger must be met. A deal with a single reward on a product discounts no other
 * product.
 */
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
