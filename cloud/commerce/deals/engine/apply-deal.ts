import type { RewardType } from '../../../../protocol/model/deal-terms.ts'
import { indexOf, type LineGroup } from './cart-index.ts'
import {
  givesAway,
  greatest,
  inOrder,
  isOnCart,
  noUnits,
  splitByLargestRemainder,
  type Cart,
  type CartLine,
  type Deal,
  type Reward,
  type Units,
} from './deal.ts'
import { type Buyer, timesMet, unitsBesideTriggers } from './judge-deal.ts'
import { Supply } from './supply.ts'

/** The combined effect of all deals on a cart. Cents. */
export interface Plan {
  applications: readonly Application[]
  /** By line. */
  units: number[]
  discounts: number[]
  saving: number
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

/**
 * Chooses among eligible deals. Stackable deals apply together, in order, each to the remaining units. Each deal is
 * also tried alone, because a stack may take the units of the best deal. The largest saving wins. Among equal savings
 * the lowest deal id wins, and a stack before one of its deals. Discounts are split over lines only for the winner.
 */
export function chooseDeals(deals: readonly Deal[], cart: Cart, buyer: Buyer): Plan {
  const fitted = deals.flatMap((deal) => fit(deal, cart, buyer) ?? [])
  const { quantities: all } = indexOf(cart.lines)
  const together = stack(
    fitted.filter(({ deal }) => deal.terms.stackable),
    all,
  )
  const alone = fitted.flatMap((one) => bestTrial(one, all) ?? []).map((trial) => [trial])
  const best = [together, ...alone].reduce((a, b) => (isBetter(b, a) ? b : a))
  return planOf(best, cart)
}

function isBetter(a: readonly Trial[], b: readonly Trial[]): boolean {
  const difference = savingOf(a) - savingOf(b)
  return difference > 0 || (difference === 0 && lowestId(a) < lowestId(b))
}

const savingOf = (trials: readonly Trial[]): number => sum(trials.map(({ saving }) => saving))
const lowestId = (trials: readonly Trial[]): number =>
  trials.reduce((lowest, { deal }) => Math.min(lowest, deal.id), Infinity)

/** At most one deal makes a unit cheaper. */
function stack(fitted: readonly Fitted[], all: Units): Trial[] {
  const free = [...all]
  return fitted
    .toSorted((a, b) => inOrder(a.deal, b.deal))
    .flatMap((one) => {
      const trial = bestTrial(one, free)
      if (!trial) return []
      for (const { portions } of trial.grants) for (const { index, count } of portions) free[index]! -= count
      return [trial]
    })
}

/** The saving of one deal alone on a cart, in cents. */
export function savingAlone(deal: Deal, cart: Cart, buyer: Buyer): number {
  const fitted = fit(deal, cart, buyer)
  return (fitted && bestTrial(fitted, indexOf(cart.lines).quantities)?.saving) ?? 0
}

/** A deal that a cart qualifies for, with the lines of each reward. */
interface Fitted {
  deal: Deal
  lines: readonly CartLine[]
  /** How often its triggers are met. */
  most: number
  rewards: readonly { reward: Reward; order: readonly number[] }[]
}

function fit(deal: Deal, cart: Cart, buyer: Buyer): Fitted | null {
  const most = timesMet(deal, cart, buyer)
  if (most === 0) return null
  const { lines } = cart
  return {
    deal,
    lines,
    most,
    rewards: deal.rewards.map((reward) => ({ reward, order: linesFor(reward, lines) })),
  }
}

/**
 * The lines that a reward may use, cheapest first. A reward on units skips lines that it would not make cheaper. A
 * reward without product and quantity applies to the whole cart.
 */
const linesFor = (reward: Reward, lines: readonly CartLine[]): readonly number[] =>
  isOnCart(reward) ? indexOf(lines).all.cheapest : linesMadeCheaper(reward, lines)

function linesMadeCheaper({ type, productId, value }: Reward, lines: readonly CartLine[]): readonly number[] {
  const index = indexOf(lines)
  const { priced } = productId === null ? index.all : index.ofProduct(productId)
  return type === 'FIXED_PRICE' ? priced.filter((line) => lines[line]!.unitPrice > value) : priced
}

/** A number of applications of one deal, with the units that it makes cheaper. Cents. */
interface Trial {
  deal: Deal
  times: number
  grants: readonly Grant[]
  saving: number
}

/**
 * Applies one deal to the units without another deal's discount (`free`). Returns null if it saves nothing. Triggers
 * use the whole cart. The deal does not give away units that met its own triggers.
 */
function bestTrial(fitted: Fitted, free: Units): Trial | null {
  const givable = fitted.deal.rewards.some(givesAway) ? givableOf(fitted, free) : () => free
  const trials = timesToTry(fitted, givable).map((times) => tryTimes(fitted, free, givable(times), times))
  const best = trials.reduce((a, b) => (b.saving > a.saving ? b : a))
  return best.saving > 0 ? best : null
}

/**
 * The numbers of applications to try. A unit cannot both meet a trigger and be free, so more of one means less of the
 * other. Tries the number at which every reward is complete, and one more for the rest; for a reward of all units one
 * application is best.
 */
function timesToTry({ deal, most, rewards }: Fitted, givable: (times: number) => Units): number[] {
  if (!deal.rewards.some(givesAway)) return [most]
  const given = rewards.filter(({ reward }) => givesAway(reward))
  const whole = greatest(most, (times) => {
    if (times === 0) return true
    const supply = new Supply(givable(times))
    return given.every(({ reward, order }) => {
      const wanted = unitsWanted(reward, times)
      return supply.take(order, wanted ?? Infinity) === 0 || wanted === null
    })
  })
  return [...new Set([1, Math.max(1, whole), Math.min(most, whole + 1)])]
}

/** Units that a deal may give away if its triggers are met a number of times. */
function givableOf({ deal, lines, rewards }: Fitted, free: Units): (times: number) => Units {
  const given = new Set(
    rewards
      .filter(({ reward }) => givesAway(reward))
      .flatMap(({ reward }) => linesMadeCheaper(reward, lines)),
  )
  const isWanted = (index: number): boolean => given.has(index) && free[index]! > 0
  // Lines that the deal does not give away meet its triggers first; then the most expensive of the others.
  const triggerOrder = ({ dearest }: LineGroup): number[] => [
    ...dearest.filter((index) => !isWanted(index)),
    ...dearest.filter(isWanted),
  ]
  const unitsBeside = unitsBesideTriggers(deal, lines, triggerOrder)
  return (times) => {
    const beside = unitsBeside(times)
    return beside === null ? free : free.map((count, index) => Math.min(count, beside[index]!))
  }
}

/** Units of a line. */
interface Portion {
  index: number
  count: number
}

/** The effect of a reward: the units that it makes cheaper, and cents off all of them together. */
interface Grant {
  reward: Reward
  portions: readonly Portion[]
  saving: number
}

function tryTimes({ deal, lines, rewards }: Fitted, free: Units, toGive: Units, times: number): Trial {
  const left = [...free]
  const leftToGive = [...toGive]
  const grants = rewards.map(({ reward, order }): Grant => {
    const isGift = givesAway(reward)
    const allowed = (index: number): number =>
      isGift ? Math.min(left[index]!, leftToGive[index]!) : left[index]!
    const portions = take(order, unitsWanted(reward, times), allowed)
    for (const { index, count } of portions) {
      left[index]! -= count
      if (isGift) leftToGive[index]! -= count
    }
    return { reward, portions, saving: centsOff(reward, portions, lines, times) }
  })
  const saving = sum(grants.map((grant) => grant.saving))
  return { deal, times, grants, saving: Math.min(saving, deal.terms.mostDiscount ?? Infinity) }
}

/** Up to `wanted` of the allowed units, line after line in the given order; null: all. */
function take(
  order: readonly number[],
  wanted: number | null,
  allowed: (index: number) => number,
): Portion[] {
  const portions: Portion[] = []
  let missing = wanted ?? Infinity
  for (const index of order) {
    if (missing === 0) break
    const count = Math.min(missing, allowed(index))
    if (count === 0) continue
    missing -= count
    portions.push({ index, count })
  }
  return portions
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
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

/** The discount of each unit; null: the reward applies to its units as a group. */
const offEach = (reward: Reward) => (isOnCart(reward) ? null : offUnit[reward.type])

/** Maximum number of units of a reward; null: all. `CHEAPEST_FREE` without a quantity means one unit. */
const unitsWanted = ({ type, quantity }: Reward, times: number): number | null => {
  if (quantity !== null) return quantity * times
  return type === 'CHEAPEST_FREE' ? times : null
}

const worthOf = (portions: readonly Portion[], lines: readonly CartLine[]): number[] =>
  portions.map(({ index, count }) => count * lines[index]!.unitPrice)

function centsOff(
  reward: Reward,
  portions: readonly Portion[],
  lines: readonly CartLine[],
  times: number,
): number {
  const off = offEach(reward)
  if (off === null) return offGroup[reward.type](sum(worthOf(portions, lines)), reward.value, times)
  return sum(portions.map(({ index, count }) => count * off(lines[index]!.unitPrice, reward.value)))
}

/** The chosen trials with their discounts by line. */
function planOf(trials: readonly Trial[], { lines }: Cart): Plan {
  const applications = trials.map((trial) => applicationOf(trial, lines))
  const units = noUnits(lines)
  const discounts = noUnits(lines)
  for (const application of applications)
    for (const index of lines.keys()) {
      units[index]! += application.units[index]!
      discounts[index]! += application.discounts[index]!
    }
  return { applications, units, discounts, saving: savingOf(trials) }
}

function applicationOf({ deal, grants, saving }: Trial, lines: readonly CartLine[]): Application {
  const units = noUnits(lines)
  const discounts = noUnits(lines)
  for (const grant of grants) {
    const off = discountsOf(grant, lines)
    for (const [place, { index, count }] of grant.portions.entries()) {
      units[index]! += count
      discounts[index]! += off[place]!
    }
  }
  return { deal, units, discounts: splitByLargestRemainder(saving, discounts), saving }
}

/** The discount of each portion of a reward. */
function discountsOf({ reward, portions, saving }: Grant, lines: readonly CartLine[]): number[] {
  const off = offEach(reward)
  if (off !== null)
    return portions.map(({ index, count }) => count * off(lines[index]!.unitPrice, reward.value))
  // The first lines of the cart get the odd cents.
  const places = portions.map((_, place) => place).sort((a, b) => portions[a]!.index - portions[b]!.index)
  const worth = worthOf(portions, lines)
  const split = splitByLargestRemainder(
    saving,
    places.map((place) => worth[place]!),
  )
  const discounts = noUnits(portions)
  for (const [rank, place] of places.entries()) discounts[place] = split[rank]!
  return discounts
}
