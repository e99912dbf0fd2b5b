import type { DealTerms, TimeWindow } from '../../../../protocol/model/deal-terms.ts'
import type { DealStatus } from '../../../../protocol/contract/deals.ts'
import type { Cart, Deal } from './deal.ts'
import { timesMet, type Buyer } from './triggers.ts'

/** What the hub's wall shows: its calendar and its clock. */
export interface HubTime {
  /** `YYYY-MM-DD` */
  day: string
  /** ISO: Monday is 1. */
  weekday: number
  /** Minutes since midnight. */
  minute: number
}

/** Redemptions that bind a deal's limits, without one that this very cart would take up. */
export interface Uses {
  total: number
  /** By the same customer or device; null where none is known. */
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

/** Where a deal stands at a day of its hub. */
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

/** What keeps a deal from a cart, or null: it is eligible. */
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

/** A limit for each customer or device binds whoever is known; somebody of whom nothing is known has no use at all. */
const isUsedUpBy = (limit: number | null, uses: number | null, otherwise: number | null): boolean =>
  isUsedUp(limit, uses ?? otherwise ?? Infinity)

const crossesMidnight = ({ from, to }: TimeWindow): boolean => from > to

const isWithin = (window: TimeWindow, minute: number): boolean =>
  crossesMidnight(window)
    ? minute >= window.from || minute <= window.to
    : minute >= window.from && minute <= window.to

/** The hours after midnight of a window that crosses it belong to the day on which it began. */
function weekdayIn(window: TimeWindow | null, { weekday, minute }: HubTime): number {
  const isDayBefore = window !== null && crossesMidnight(window) && minute <= window.to
  return isDayBefore ? ((weekday + 5) % 7) + 1 : weekday
}
