import type { RewardType } from '../../../protocol/model/deal-terms.ts'
import type { Reward } from './engine/deal.ts'

interface Words {
  /** `2 × Cola`, `Cola`, `2 items`, `the whole cart` */
  what: string
  each: string
  value: number
  money: string
}

const sentences: Record<RewardType, (words: Words) => string> = {
  FREE_ITEM: ({ what }) => `${what} free`,
  PERCENT_OFF: ({ what, value }) => `${value}% off ${what}`,
  AMOUNT_OFF: ({ what, each, money }) => `${money} off ${what}${each}`,
  FIXED_PRICE: ({ what, each, money }) => `${what} for ${money}${each}`,
  CHEAPEST_FREE: ({ what }) => `the cheapest of ${what} free`,
}

/** What a deal gives, in words; product names by id. */
export function describeRewards(
  rewards: readonly Reward[],
  nameOf: (productId: number) => string,
  currency: string,
): string {
  return rewards
    .map(({ type, quantity, productId, value }) => {
      const name = productId === null ? null : nameOf(productId)
      const isCart = name === null && quantity === null
      return sentences[type]({
        what: isCart ? 'the whole cart' : counted(quantity, name),
        each: isCart || quantity === 1 ? '' : ' each',
        value,
        money: `${(value / 100).toFixed(2)} ${currency}`,
      })
    })
    .join(', ')
}

function counted(quantity: number | null, name: string | null): string {
  if (name === null) return quantity === 1 ? 'one item' : `${quantity} items`
  return quantity === null ? name : `${quantity} × ${name}`
}
