import { givesAway, type Cart, type Deal } from './deal.ts'
import { splitByLargestRemainder } from './largest-remainder.ts'
import { grant, isServed, linesFor } from './rewards.ts'
import { timesMet, triggerUnits, type Buyer } from './triggers.ts'
import { greatest, least, minus, noUnits, plus, type Units } from './units.ts'

/** What one deal does to a cart. Cents. */
export interface Application {
  deal: Deal
  /** By line: the units that bear its discount, and what they bear together. */
  units: number[]
  discounts: number[]
  /** The sum of `discounts`; above 0. */
  saving: number
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/**
 * Applies one deal to the units that bear no other deal's discount (`free`), or returns null where it saves nothing.
 * Triggers look at the cart as it is; what they took a unit for, a deal of its own does not give away.
 */
export function applyDeal(deal: Deal, cart: Cart, buyer: Buyer, free: Units): Application | null {
  const most = timesMet(deal, cart, buyer)
  if (most === 0) return null
  const attempts = timesToTry(deal, cart, free, most).map((times) => attempt(deal, cart, free, times))
  const best = attempts.reduce((a, b) => (b.saving > a.saving ? b : a))
  return best.saving > 0 ? best : null
}

/**
 * How often to apply a deal whose triggers could be met `most` times. Units that it gives away must not be those that met a
 * trigger, so more of the one are less of the other: as often as every reward is served in whole, or once more for a rest;
 * a reward of all units is best served by one.
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

/** Units that a deal may give away when its triggers are met so often. */
function givable(deal: Deal, cart: Cart, free: Units, times: number): number[] {
  const used = triggerUnits(deal, cart, times, triggerOrder(deal, cart, free)) ?? noUnits(cart.lines)
  const untouched = cart.lines.map(({ quantity }, index) => quantity - used[index]!)
  return least(free, untouched)
}

/** Lines that the deal does not give away meet its triggers first, and of the others the dearest. */
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
