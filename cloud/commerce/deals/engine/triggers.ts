import type { TriggerType } from '../../../../protocol/model/deal-terms.ts'
import type { Cart, CartLine, Deal, Trigger } from './deal.ts'
import { countOf, greatest, minus, noUnits, plus, take, type Units } from './units.ts'

/** What a trigger of money or person is measured by. Of a customer who is not known, orders are null. */
export interface Buyer {
  /** Orders paid before this one. */
  paidOrders: number | null
}

/** Whether a trigger is met as a whole; null: by units of the cart, each by its own. */
const met: Record<TriggerType, ((trigger: Trigger, cart: Cart, buyer: Buyer) => boolean) | null> = {
  QUANTITY: null,
  CATEGORY: null,
  SPEND: ({ quantity }, { total }) => total >= quantity,
  FIRST_ORDER: (_trigger, _cart, { paidOrders }) => paidOrders === 0,
  ALWAYS: () => true,
}

const isOfUnits = ({ type }: Trigger): boolean => met[type] === null

const fits = ({ productId, categoryId }: Trigger, line: CartLine): boolean => {
  if (productId !== null) return line.productId === productId
  return categoryId === null || line.categoryIds.includes(categoryId)
}

/** How often the triggers of a deal are met: whole multiples of those of units, else once; 0 where one is not met. */
export function timesMet(deal: Deal, cart: Cart, buyer: Buyer): number {
  for (const trigger of deal.triggers) if (met[trigger.type]?.(trigger, cart, buyer) === false) return 0
  const ofUnits = deal.triggers.filter(isOfUnits)
  if (ofUnits.length === 0) return 1
  const most = Math.min(
    ...ofUnits.map((trigger) => Math.floor(countOf(fitting(trigger, cart)) / trigger.quantity)),
  )
  const anyOrder = cart.lines.map((_, index) => index)
  return greatest(most, (times) => times === 0 || triggerUnits(deal, cart, times, anyOrder) !== null)
}

/**
 * The units that meet a deal's triggers so many times, each unit one trigger, or null where there are not enough. `order`
 * says which lines are to give theirs first. The narrowest trigger chooses first: what fits it fits the wider ones too.
 */
export function triggerUnits(
  deal: Deal,
  cart: Cart,
  times: number,
  order: readonly number[],
): number[] | null {
  let used = noUnits(cart.lines)
  const narrowestFirst = deal.triggers
    .filter(isOfUnits)
    .map((trigger) => ({ trigger, units: fitting(trigger, cart) }))
    .sort((a, b) => countOf(a.units) - countOf(b.units))
  for (const { trigger, units } of narrowestFirst) {
    const wanted = trigger.quantity * times
    const free = minus(units, used).map((count) => Math.max(0, count))
    const taken = take(free, order, wanted)
    if (countOf(taken) < wanted) return null
    used = plus(used, taken)
  }
  return used
}

const fitting = (trigger: Trigger, { lines }: Cart): Units =>
  lines.map((line) => (fits(trigger, line) ? line.quantity : 0))
