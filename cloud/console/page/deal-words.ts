import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import { amount, count } from './format.ts'

/** Names of products by their numbers, for the sentence that describes a deal. */
type Names = ReadonlyMap<number, string>

const nameOf = (id: number, named: Names): string => named.get(id) ?? `product ${id}`

export function triggerText(trigger: Deal['triggers'][number], named: Names): string {
  const { type, quantity, category, category_id, product_id } = trigger
  const group = category ?? (category_id === null ? 'any product' : `category ${category_id}`)
  const what = product_id === null ? group : nameOf(product_id, named)
  const texts = {
    SPEND: `a cart of ${amount(quantity ?? 0)}`,
    QUANTITY: `${quantity} × ${what}`,
    CATEGORY: what,
    ALWAYS: 'every cart',
    FIRST_ORDER: 'the first order',
  }
  return texts[type]
}

export function rewardText(reward: Deal['rewards'][number], named: Names): string {
  const { type, quantity, product_id, discount_pct_or_price: value } = reward
  const what = product_id === null ? 'the cart' : nameOf(product_id, named)
  const on = `${quantity === null ? '' : `${quantity} × `}${what}`
  const texts = {
    FREE_ITEM: `${on} free`,
    PERCENT_OFF: `${value} % off ${on}`,
    AMOUNT_OFF: `${amount(value ?? 0)} off ${on}`,
    FIXED_PRICE: `${on} for ${amount(value ?? 0)}`,
    CHEAPEST_FREE: 'the cheapest unit free',
  }
  return texts[type]
}

const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** A limit of a deal. Undefined if it limits nothing. */
export function constraintText({ type, value }: Deal['constraints'][number]): string | undefined {
  const times = count(Number(value), 'time')
  const texts = {
    SALEAMT: `from a cart of ${amount(Number(value))}`,
    MAXDISCOUNT: `at most ${amount(Number(value))} off`,
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
