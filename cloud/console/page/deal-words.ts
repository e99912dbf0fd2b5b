import { counted } from '../../../protocol/model/counted.ts'
import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import { money } from './format.ts'

/** Facts of a hub for the texts of its deals. */
export interface DealWords {
  /** Names of products by their numbers. */
  names: ReadonlyMap<number, string>
  currency: string | undefined
}

const nameOf = (id: number, { names }: DealWords): string => names.get(id) ?? `product ${id}`

export function triggerText(trigger: Deal['triggers'][number], words: DealWords): string {
  const { type, quantity, category, category_id, product_id } = trigger
  const group = category ?? (category_id === null ? 'any product' : `category ${category_id}`)
  const what = product_id === null ? group : nameOf(product_id, words)
  const texts = {
    SPEND: `a cart of ${money(quantity ?? 0, words.currency)}`,
    QUANTITY: `${quantity} × ${what}`,
    CATEGORY: what,
    ALWAYS: 'every cart',
    FIRST_ORDER: 'the first order',
  }
  return texts[type]
}

export function rewardText(reward: Deal['rewards'][number], words: DealWords): string {
  const { type, quantity, product_id, discount_pct_or_price: value } = reward
  const what = product_id === null ? 'the cart' : nameOf(product_id, words)
  const on = `${quantity === null ? '' : `${quantity} × `}${what}`
  const texts = {
    FREE_ITEM: `${on} free`,
    PERCENT_OFF: `${value} % off ${on}`,
    AMOUNT_OFF: `${money(value ?? 0, words.currency)} off ${on}`,
    FIXED_PRICE: `${on} for ${money(value ?? 0, words.currency)}`,
    CHEAPEST_FREE: 'the cheapest unit free',
  }
  return texts[type]
}

const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** A limit of a deal. Undefined if it limits nothing. */
export function constraintText(
  { type, value }: Deal['constraints'][number],
  { currency }: DealWords,
): string | undefined {
  const times = counted(Number(value), 'time')
  const texts = {
    SALEAMT: `from a cart of ${money(Number(value), currency)}`,
    MAXDISCOUNT: `at most ${money(Number(value), currency)} off`,
    MAXUSES: `at most ${times}`,
    MAXUSES_USER: `at most ${times} for each customer`,
    MAXUSES_DEVICE: `at most ${times} for each device`,
    FIRSTORDER: value === '1' ? 'first order only' : undefined,
    STACKABLE: value === '1' ? 'also with other deals' : undefined,
    WEEKDAYS: value
      .split(',')
      .map((day) => days[Number(day) - 1] ?? day)
      .join(', '),
    TIMEWINDOW: value.replace('-', ' to '),
  }
  return texts[type]
}
