import type { RewardType } from '../../../../protocol/model/deal-terms.ts'
import { givesAway, isOnCart, type CartLine, type Reward } from './deal.ts'
import { splitByLargestRemainder } from './largest-remainder.ts'
import { cheapestFirst, countOf, take, type Units } from './units.ts'

/** What a reward does to a cart: units that it makes cheaper, and cents off, by line. */
export interface Grant {
  units: number[]
  discounts: number[]
}

const worthOf = (units: Units, lines: readonly CartLine[]): number[] =>
  units.map((count, index) => count * lines[index]!.unitPrice)
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const share = (percent: number, cents: number): number => Math.floor((cents * percent) / 100)

/** Cents off a group that costs `cents`. An amount is there for each time that the trigger is met; a price is one price. */
const offGroup: Record<RewardType, (cents: number, value: number, times: number) => number> = {
  FREE_ITEM: (cents) => cents,
  CHEAPEST_FREE: (cents) => cents,
  PERCENT_OFF: (cents, percent) => share(percent, cents),
  AMOUNT_OFF: (cents, amount, times) => Math.min(cents, amount * times),
  FIXED_PRICE: (cents, price) => Math.max(0, cents - price),
}

/** Cents off one unit; null: off the group, floored there and split. */
const offUnit: Record<RewardType, ((unitPrice: number, value: number) => number) | null> = {
  FREE_ITEM: (unitPrice) => unitPrice,
  CHEAPEST_FREE: (unitPrice) => unitPrice,
  PERCENT_OFF: null,
  AMOUNT_OFF: (unitPrice, amount) => Math.min(unitPrice, amount),
  FIXED_PRICE: (unitPrice, price) => Math.max(0, unitPrice - price),
}

/** How many units a reward may have; null: all. `CHEAPEST_FREE` of all would not be the cheapest: it is one. */
export const unitsWanted = ({ type, quantity }: Reward, times: number): number | null => {
  if (quantity !== null) return quantity * times
  return type === 'CHEAPEST_FREE' ? times : null
}

/** The lines a reward may choose from, in its order: what it would not make cheaper it leaves alone. */
export const linesFor = ({ type, productId, value }: Reward, lines: readonly CartLine[]): number[] =>
  cheapestFirst(
    lines,
    (line) =>
      (productId === null || line.productId === productId) &&
      line.unitPrice > (type === 'FIXED_PRICE' ? value : 0),
  )

/**
 * Carries out a reward on the units that are still to be had, cheapest first. Of the cart as one thing where it says
 * neither product nor quantity, else of units.
 */
export function grant(reward: Reward, lines: readonly CartLine[], free: Units, times: number): Grant {
  if (isOnCart(reward)) return onGroup(reward, lines, [...free], times)
  const order = linesFor(reward, lines)
  const units = take(free, order, unitsWanted(reward, times) ?? countOf(free))
  const off = offUnit[reward.type]
  if (off === null) return onGroup(reward, lines, units, times)
  return {
    units,
    discounts: units.map((count, index) => count * off(lines[index]!.unitPrice, reward.value)),
  }
}

function onGroup({ type, value }: Reward, lines: readonly CartLine[], units: number[], times: number): Grant {
  const worth = worthOf(units, lines)
  const discounts = splitByLargestRemainder(offGroup[type](sum(worth), value, times), worth)
  return { units, discounts }
}

/** Whether every one of the units that a reward gives away is there to be had. */
export function isServed(reward: Reward, lines: readonly CartLine[], free: Units, times: number): boolean {
  const wanted = unitsWanted(reward, times)
  if (!givesAway(reward) || wanted === null) return true
  return countOf(take(free, linesFor(reward, lines), wanted)) === wanted
}
