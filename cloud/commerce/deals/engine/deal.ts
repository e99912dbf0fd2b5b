import type { DealTerms, RewardType, TriggerType } from '../../../../protocol/model/deal-terms.ts'

/** A condition of a deal. */
export interface Trigger {
  type: TriggerType
  /** Units, at least 1; cents for `SPEND`. */
  quantity: number
  productId: number | null
  /** A category or subcategory; ignored if there is a product. */
  categoryId: number | null
}

export interface Reward {
  type: RewardType
  /** Units affected; null: all. */
  quantity: number | null
  /** Null: the whole cart. */
  productId: number | null
  /** Percent or cents, depending on the type; 0 for free units. */
  value: number
}

/** A deal in the engine's form. `start` and `end` are days of the hub, inclusive; null means open. */
export interface Deal {
  id: number
  name: string
  priority: number
  isActive: boolean
  start: string | null
  end: string | null
  triggers: readonly Trigger[]
  rewards: readonly Reward[]
  terms: DealTerms
}

/** A line of a cart. Cents per unit. */
export interface CartLine {
  productId: number
  /** Its known category and subcategory. */
  categoryIds: readonly number[]
  quantity: number
  unitPrice: number
}

export interface Cart {
  lines: readonly CartLine[]
  /** The total for money thresholds, before any deal. Cents. */
  total: number
}

export const totalOf = (lines: readonly CartLine[]): number =>
  lines.reduce((sum, { quantity, unitPrice }) => sum + quantity * unitPrice, 0)

/** A reward on the whole cart; every other reward applies to units. */
export const isOnCart = ({ type, productId, quantity }: Reward): boolean =>
  productId === null && quantity === null && type !== 'FREE_ITEM' && type !== 'CHEAPEST_FREE'

/** Whether its units are free: such units cannot meet the deal's own trigger. */
export const givesAway = ({ type, value }: Reward): boolean => {
  switch (type) {
    case 'FREE_ITEM':
    case 'CHEAPEST_FREE':
      return true
    case 'PERCENT_OFF':
      return value === 100
    case 'FIXED_PRICE':
      return value === 0
    case 'AMOUNT_OFF':
      return false
  }
}

/** Line deals come before cart deals. */
const isCartDeal = ({ rewards }: Deal): boolean => rewards.every(isOnCart)

/** The order of deals: line deals, then cart deals; within each the higher priority, then the lower id. */
export const inOrder = (a: Deal, b: Deal): number =>
  Number(isCartDeal(a)) - Number(isCartDeal(b)) || b.priority - a.priority || a.id - b.id

/**
 * The content that a cart must have before a deal can save anything: `product 12`, `category 3`, or nothing special.
 */
type Need = '' | `product ${number}` | `category ${number}`

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

/** Units of a cart: a number for each line. */
export type Units = readonly number[]

export const noUnits = (lines: readonly unknown[]): number[] => lines.map(() => 0)

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
  const divide = amount * total <= Number.MAX_SAFE_INTEGER ? divided : dividedExactly
  const shares = weights.map((weight) => divide(amount, weight, total))
  const left = amount - shares.reduce((sum, { part }) => sum + part, 0)
  const byRemainder = shares.map((_, index) => index)
  byRemainder.sort((a, b) => shares[b]!.remainder - shares[a]!.remainder || a - b)
  const rounded = new Set(byRemainder.slice(0, left))
  return shares.map(({ part }, index) => part + (rounded.has(index) ? 1 : 0))
}

/** A weight's share of an amount, and the remainder of the division. Each weight is at most the total. */
const divided = (amount: number, weight: number, total: number) => {
  const remainder = (amount * weight) % total
  return { part: (amount * weight - remainder) / total, remainder }
}

/** The same for products beyond the range of exact numbers. */
const dividedExactly = (amount: number, weight: number, total: number) => {
  const product = BigInt(amount) * BigInt(weight)
  return { part: Number(product / BigInt(total)), remainder: Number(product % BigInt(total)) }
}
