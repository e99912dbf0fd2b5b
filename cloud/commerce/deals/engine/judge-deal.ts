import { DAY_MS } from '../../../../protocol/model/times.ts'
import type { DealStatus } from '../../../../protocol/contract/deals.ts'
import type { DealTerms, TimeWindow, TriggerType } from '../../../../protocol/model/deal-terms.ts'
import { weekdayOf } from '../../../platform/calendar/days.ts'
import { localDay, minuteOfDay } from '../../../platform/calendar/zone.ts'
import { type CartIndex, indexOf, type LineGroup } from './cart-index.ts'
import {
  givesAway,
  greatest,
  type Cart,
  type CartLine,
  type Deal,
  type Reward,
  type Trigger,
  type Units,
} from './deal.ts'
import { Supply } from './supply.ts'

/** The date and time at a hub. */
export interface HubTime {
  /** `YYYY-MM-DD` */
  day: string
  /** ISO: Monday is 1. */
  weekday: number
  /** Minutes since midnight. */
  minute: number
}

/** Redemptions that count for a deal's limits, without this cart's own. */
export interface Uses {
  total: number
  /** By the same customer or device; null if it is not known. */
  byUser: number | null
  byDevice: number | null
}

export interface Circumstances {
  time: HubTime
  buyer: Buyer
  usesOf: (deal: Deal) => Uses
}

/** Why a deal does not apply. */
export type Obstacle =
  | Exclude<DealStatus, 'active'>
  | 'wrong_weekday'
  | 'wrong_time'
  | 'cart_too_small'
  | 'not_first_order'
  | 'user_limit'
  | 'device_limit'
  | 'trigger_not_met'

/** The status of a deal on a day of its hub. */
export function statusOf(
  deal: Pick<Deal, 'isActive' | 'start' | 'end' | 'terms'>,
  day: string,
  totalUses: number,
): DealStatus {
  if (!deal.isActive) return 'inactive'
  if (deal.start !== null && day < deal.start) return 'scheduled'
  if (deal.end !== null && day > deal.end) return 'expired'
  return isUsedUp(deal.terms.maxUses, totalUses) ? 'exhausted' : 'active'
}

/** Why a cart does not get a deal; null if it is eligible. */
export function judgeDeal(deal: Deal, cart: Cart, circumstances: Circumstances): Obstacle | null {
  const { time, buyer, usesOf } = circumstances
  const { terms } = deal
  const uses = usesOf(deal)
  const status = statusOf(deal, time.day, uses.total)
  if (status !== 'active') return status
  if (terms.weekdays !== null && !terms.weekdays.includes(weekdayIn(terms.window, time)))
    return 'wrong_weekday'
  if (terms.window !== null && !isWithin(terms.window, time.minute)) return 'wrong_time'
  if (terms.leastCart !== null && cart.total < terms.leastCart) return 'cart_too_small'
  if (asksForFirstOrder(deal) && buyer.paidOrders !== 0) return 'not_first_order'
  if (isUsedUpBy(terms.maxUsesPerUser, uses.byUser, uses.byDevice)) return 'user_limit'
  if (isUsedUpBy(terms.maxUsesPerDevice, uses.byDevice, uses.byUser)) return 'device_limit'
  return timesMet(deal, cart, buyer) === 0 ? 'trigger_not_met' : null
}

export const asksForFirstOrder = ({ terms, triggers }: Deal): boolean =>
  terms.firstOrder || triggers.some(({ type }) => type === 'FIRST_ORDER')

export const isLimited = ({ maxUses, maxUsesPerUser, maxUsesPerDevice }: DealTerms): boolean =>
  maxUses !== null || maxUsesPerUser !== null || maxUsesPerDevice !== null

const isUsedUp = (limit: number | null, uses: number): boolean => limit !== null && uses >= limit

/**
 * A limit for each customer or device applies to known ones. A customer without any known trait cannot use the deal.
 */
const isUsedUpBy = (limit: number | null, uses: number | null, otherwise: number | null): boolean =>
  isUsedUp(limit, uses ?? otherwise ?? Infinity)

const crossesMidnight = ({ from, to }: TimeWindow): boolean => from > to

const isWithin = (window: TimeWindow, minute: number): boolean =>
  crossesMidnight(window)
    ? minute >= window.from || minute <= window.to
    : minute >= window.from && minute <= window.to

/** In a window that crosses midnight, the hours after midnight belong to the day before. */
function weekdayIn(window: TimeWindow | null, { weekday, minute }: HubTime): number {
  const isDayBefore = window !== null && crossesMidnight(window) && minute <= window.to
  return isDayBefore ? ((weekday + 5) % 7) + 1 : weekday
}

/** The customer's data for triggers. `paidOrders` is null for an unknown customer. */
export interface Buyer {
  /** Orders paid before this one. */
  paidOrders: number | null
}

/** Whether a trigger is met as a whole; null: units of the cart meet it. */
const met: Record<TriggerType, ((trigger: Trigger, cart: Cart, buyer: Buyer) => boolean) | null> = {
  QUANTITY: null,
  CATEGORY: null,
  SPEND: ({ quantity }, { total }) => total >= quantity,
  FIRST_ORDER: (_trigger, _cart, { paidOrders }) => paidOrders === 0,
  ALWAYS: () => true,
}

/** Units that a trigger of a deal requires each time it is met, and the lines of the cart that have such units. */
interface Demand {
  quantity: number
  group: LineGroup
}

/** The narrowest first: its units fit the wider ones too. */
const demandsOf = ({ triggers }: Deal, lines: readonly CartLine[]): Demand[] =>
  triggers
    .filter(({ type }) => met[type] === null)
    .map((trigger) => ({ quantity: trigger.quantity, group: linesOf(trigger, indexOf(lines)) }))
    .sort((a, b) => a.group.units - b.group.units)

const linesOf = ({ productId, categoryId }: Trigger, index: CartIndex): LineGroup => {
  if (productId !== null) return index.ofProduct(productId)
  return categoryId === null ? index.all : index.ofCategory(categoryId)
}

/**
 * How often the triggers of a deal are met: whole multiples for triggers of units, otherwise once; 0 if one is not met.
 */
export function timesMet(deal: Deal, cart: Cart, buyer: Buyer): number {
  for (const trigger of deal.triggers) if (met[trigger.type]?.(trigger, cart, buyer) === false) return 0
  const demands = demandsOf(deal, cart.lines)
  if (demands.length === 0) return 1
  const most = Math.min(...demands.map(({ quantity, group }) => Math.floor(group.units / quantity)))
  if (most === 0) return 0
  const unitsBeside = unitsBesideTriggers(deal, cart.lines, ({ inCart }) => inCart)
  return greatest(most, (times) => times === 0 || unitsBeside(times) !== null)
}

/**
 * Returns the remaining units of each line after the triggers of a deal are met a number of times. A unit meets at most
 * one trigger. Null: the cart has not enough units. `orderOf`: the order in which lines give units.
 */
export function unitsBesideTriggers(
  deal: Deal,
  lines: readonly CartLine[],
  orderOf: (group: LineGroup) => readonly number[],
): (times: number) => Units | null {
  const { quantities } = indexOf(lines)
  const orders = new Map<LineGroup, readonly number[]>()
  const demands = demandsOf(deal, lines).map(({ quantity, group }) => {
    const order = orders.get(group) ?? orderOf(group)
    orders.set(group, order)
    return { quantity, order }
  })
  return (times) => {
    const supply = new Supply(quantities)
    const isMet = demands.every(({ quantity, order }) => supply.take(order, quantity * times) === 0)
    return isMet ? supply.left : null
  }
}

/** The calendar and the clock of a hub at an instant. */
export function hubTime(timezone: string, at: number): HubTime {
  const day = localDay(timezone, at)
  return { day, weekday: weekdayOf(day) + 1, minute: minuteOfDay(timezone, at) }
}

/** Why no cart can ever get a deal, and the part that its owner must change. */
export interface Never {
  part: { reward: number } | 'WEEKDAYS'
  message: string
}

/** Why a deal can never apply, because its parts contradict each other; null if it can apply. */
export function neverApplies(
  deal: Pick<Deal, 'triggers' | 'rewards' | 'terms'> & Pick<Deal, 'start' | 'end'>,
): Never | null {
  const wasted = deal.rewards.map((reward) => coversTrigger(reward, deal.triggers))
  if (wasted.length > 0 && wasted.every(Boolean))
    return {
      part: { reward: 0 },
      message:
        'the reward makes free what the trigger asks the customer to buy, and units that met a trigger are never free; ' +
        'to give further units, use FREE_ITEM with a quantity',
    }
  if (!hasOpenDay(deal))
    return { part: 'WEEKDAYS', message: 'no day from start to end is one of these weekdays' }
  return null
}

/**
 * Whether a reward makes exactly the units free that a trigger requires. `FREE_ITEM` with a quantity is different: it
 * gives further units.
 */
function coversTrigger(reward: Reward, triggers: readonly Trigger[]): boolean {
  const { type, productId, quantity } = reward
  if (productId === null || !givesAway(reward) || type === 'CHEAPEST_FREE') return false
  const bought = triggers
    .filter((trigger) => trigger.type === 'QUANTITY' && trigger.productId === productId)
    .reduce((sum, trigger) => sum + trigger.quantity, 0)
  if (bought === 0) return false
  return quantity === null || (type !== 'FREE_ITEM' && quantity >= bought)
}

/** Whether a weekday of the deal occurs within its dates. Hours after midnight belong to the day before. */
function hasOpenDay({ terms, start, end }: Pick<Deal, 'start' | 'end'> & { terms: DealTerms }): boolean {
  const { weekdays, window } = terms
  if (weekdays === null || start === null || end === null) return true
  const days = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1
  const before = window !== null && crossesMidnight(window) ? 1 : 0
  // A week has every weekday.
  return Array.from({ length: Math.min(7, days + before) }).some((_, index) =>
    weekdays.includes(((weekdayOf(start) + 7 - before + index) % 7) + 1),
  )
}
