import type { RewardType } from '../../../../protocol/model/deal-terms.ts'
import {
  givesAway,
  inOrder,
  isOnCart,
  cheapestFirst,
  countOf,
  greatest,
  least,
  minus,
  noUnits,
  plus,
  splitByLargestRemainder,
  take,
  type Cart,
  type CartLine,
  type Deal,
  type Reward,
  type Units,
} from './deal.ts'
import { type Buyer, timesMet, triggerUnits } from './judge-deal.ts'

/** The combined effect of all deals on a cart. Cents. */
export interface Plan {
  applications: readonly Application[]
  /** By line. */
  units: number[]
  discounts: number[]
  saving: number
}

/**
 * Chooses among eligible deals. Stackable deals apply together, in order, each to the remaining units. Each deal is
 * also tried alone, because a stack may take the units of the best deal. The largest saving wins. Among equal savings
 * the lowest deal id wins, and a stack before one of its deals.
 */
export function chooseDeals(deals: readonly Deal[], cart: Cart, buyer: Buyer): Plan {
  const together = deals.filter(({ terms }) => terms.stackable)
  return [together, ...deals.map((deal) => [deal])]
    .map((group) => applyInOrder(group, cart, buyer))
    .reduce((best, plan) => (isBetter(plan, best) ? plan : best))
}

function isBetter(a: Plan, b: Plan): boolean {
  return a.saving > b.saving || (a.saving === b.saving && lowestId(a) < lowestId(b))
}

const lowestId = ({ applications }: Plan): number => Math.min(...applications.map(({ deal }) => deal.id))

/** At most one deal makes a unit cheaper. */
function applyInOrder(deals: readonly Deal[], cart: Cart, buyer: Buyer): Plan {
  const applications: Application[] = []
  let units = noUnits(cart.lines)
  let discounts = noUnits(cart.lines)
  for (const deal of deals.toSorted(inOrder)) {
    const free = minus(
      cart.lines.map(({ quantity }) => quantity),
      units,
    )
    const application = applyDeal(deal, cart, buyer, free)
    if (!application) continue
    applications.push(application)
    units = plus(units, application.units)
    discounts = plus(discounts, application.discounts)
  }
  return {
    applications,
    units,
    discounts,
    saving: applications.reduce((sum, { saving }) => sum + saving, 0),
  }
}

/** The effect of one deal on a cart. Cents. */
export interface Application {
  deal: Deal
  /** By line: the units with its discount, and their total discount. */
  units: number[]
  discounts: number[]
  /** The sum of `discounts`; above 0. */
  saving: number
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/**
 * Applies one deal to the units without another deal's discount (`free`). Returns null if it saves nothing. Triggers
 * use the whole cart. The deal does not give away units that met its own triggers.
 */
export function applyDeal(deal: Deal, cart: Cart, buyer: Buyer, free: Units): Application | null {
  const most = timesMet(deal, cart, buyer)
  if (most === 0) return null
  const attempts = timesToTry(deal, cart, free, most).map((times) => attempt(deal, cart, free, times))
  const best = attempts.reduce((a, b) => (b.saving > a.saving ? b : a))
  return best.saving > 0 ? best : null
}

/**
 * The numbers of applications to try, if the triggers of the deal could be met `most` times. A unit cannot both meet a
 * trigger and be free, so more of one means less of the other. Tries the number at which every reward is complete, and
 * one more for the rest; for a reward of all units one application is best.
 */
function timesToTry(deal: Deal, cart: Cart, free: Units, most: number): number[] {
  if (!deal.rewards.some(givesAway)) return [most]
  const whole = greatest(most, (times) => {
    if (times === 0) return true
    let left = givable(deal, cart, free, times)
    return deal.rewards.every((reward) => {
      const served = isServed(reward, cart.lines, left, times)
      if (givesAway(reward)) left = minus(left, grant(reward, cart.lines, left, times).units)
      return served
    })
  })
  return [...new Set([1, Math.max(1, whole), Math.min(most, whole + 1)])]
}

/** Units that a deal may give away if its triggers are met this often. */
function givable(deal: Deal, cart: Cart, free: Units, times: number): number[] {
  const used = triggerUnits(deal, cart, times, triggerOrder(deal, cart, free)) ?? noUnits(cart.lines)
  const untouched = cart.lines.map(({ quantity }, index) => quantity - used[index]!)
  return least(free, untouched)
}

/** Lines that the deal does not give away meet its triggers first; then the most expensive of the others. */
function triggerOrder(deal: Deal, { lines }: Cart, free: Units): number[] {
  const given = new Set(deal.rewards.filter(givesAway).flatMap((reward) => linesFor(reward, lines)))
  const isWanted = (index: number): number => (given.has(index) && free[index]! > 0 ? 1 : 0)
  return lines
    .map((_, index) => index)
    .sort((a, b) => isWanted(a) - isWanted(b) || lines[b]!.unitPrice - lines[a]!.unitPrice || a - b)
}

function attempt(deal: Deal, cart: Cart, free: Units, times: number): Application {
  let taken = noUnits(cart.lines)
  let discounts = noUnits(cart.lines)
  const toGive = givable(deal, cart, free, times)
  for (const reward of deal.rewards) {
    const left = minus(free, taken)
    const allowed = givesAway(reward) ? least(left, toGive) : left
    const granted = grant(reward, cart.lines, allowed, times)
    taken = plus(taken, granted.units)
    discounts = plus(discounts, granted.discounts)
  }
  const { mostDiscount } = deal.terms
  const saving = Math.min(sum(discounts), mostDiscount ?? Infinity)
  return { deal, units: taken, discounts: splitByLargestRemainder(saving, discounts), saving }
}

/** The effect of a reward on a cart, by line: units that it makes cheaper, and cents off. */
interface Grant {
  units: number[]
  discounts: number[]
}

const worthOf = (units: Units, lines: readonly CartLine[]): number[] =>
  units.map((count, index) => count * lines[index]!.unitPrice)
const share = (percent: number, cents: number): number => Math.floor((cents * percent) / 100)

/** Cents off a group that costs `cents`. An amount applies each time the trigger is met; a price applies once. */
const offGroup: Record<RewardType, (cents: number, value: number, times: number) => number> = {
  FREE_ITEM: (cents) => cents,
  CHEAPEST_FREE: (cents) => cents,
  PERCENT_OFF: (cents, percent) => share(percent, cents),
  AMOUNT_OFF: (cents, amount, times) => Math.min(cents, amount * times),
  FIXED_PRICE: (cents, price) => Math.max(0, cents - price),
}

/** Cents off one unit; null: the discount applies to the group and is split. */
const offUnit: Record<RewardType, ((unitPrice: number, value: number) => number) | null> = {
  FREE_ITEM: (unitPrice) => unitPrice,
  CHEAPEST_FREE: (unitPrice) => unitPrice,
  PERCENT_OFF: null,
  AMOUNT_OFF: (unitPrice, amount) => Math.min(unitPrice, amount),
  FIXED_PRICE: (unitPrice, price) => Math.max(0, unitPrice - price),
}

/** Maximum number of units of a reward; null: all. `CHEAPEST_FREE` without a quantity means one unit. */
const unitsWanted = ({ type, quantity }: Reward, times: number): number | null => {
  if (quantity !== null) return quantity * times
  return type === 'CHEAPEST_FREE' ? times : null
}

/** The lines that a reward may use, in its order. It skips lines that it would not make cheaper. */
const linesFor = ({ type, productId, value }: Reward, lines: readonly CartLine[]): number[] =>
  cheapestFirst(
    lines,
    (line) =>
      (productId === null || line.productId === productId) &&
      line.unitPrice > (type === 'FIXED_PRICE' ? value : 0),
  )

/**
 * Applies a reward to the remaining units, cheapest first. A reward without product and quantity applies to the whole
 * cart.
 */
function grant(reward: Reward, lines: readonly CartLine[], free: Units, times: number): Grant {
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

/** Whether all units that a reward gives away are available. */
function isServed(reward: Reward, lines: readonly CartLine[], free: Units, times: number): boolean {
  const wanted = unitsWanted(reward, times)
  if (!givesAway(reward) || wanted === null) return true
  return countOf(take(free, linesFor(reward, lines), wanted)) === wanted
}
