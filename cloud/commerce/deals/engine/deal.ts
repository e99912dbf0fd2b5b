import type { DealTerms, RewardType, TriggerType } from '../../../../protocol/model/deal-terms.ts'

/** What has to be there for a deal to apply. */
export interface Trigger {
  type: TriggerType
  /** Units, at least 1; of `SPEND` cents. */
  quantity: number
  productId: number | null
  /** A category or subcategory; without meaning where there is a product. */
  categoryId: number | null
}

/** What a deal gives. */
export interface Reward {
  type: RewardType
  /** Units affected; null: all. */
  quantity: number | null
  /** Null: the whole cart. */
  productId: number | null
  /** Percent or cents, as the type has it; 0 for free units. */
  value: number
}

/** A deal as the engine sees it. `start` and `end` are days of the hub, inclusive; null is open. */
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
  /** Its category and subcategory, as far as they are known. */
  categoryIds: readonly number[]
  quantity: number
  unitPrice: number
}

export interface Cart {
  lines: readonly CartLine[]
  /** What thresholds of money are measured by, before any deal. Cents. */
  total: number
}

export const totalOf = (lines: readonly CartLine[]): number =>
  lines.reduce((sum, { quantity, unitPrice }) => sum + quantity * unitPrice, 0)

/** A reward on the cart as one thing; every other one is on units. */
export const isOnCart = ({ type, productId, quantity }: Reward): boolean =>
  productId === null && quantity === null && type !== 'FREE_ITEM' && type !== 'CHEAPEST_FREE'

/** Whether its units cost nothing: such units cannot have met the deal's own trigger. */
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
export const isCartDeal = ({ rewards }: Deal): boolean => rewards.every(isOnCart)

/** The order in which deals are looked at: line deals, then cart deals; in each the higher priority, then the lower id. */
export const inOrder = (a: Deal, b: Deal): number =>
  Number(isCartDeal(a)) - Number(isCartDeal(b)) || b.priority - a.priority || a.id - b.id
