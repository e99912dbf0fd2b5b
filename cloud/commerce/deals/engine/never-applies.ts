import type { DealTerms } from '../../../../protocol/model/deal-terms.ts'
import { weekdayOf } from '../../../platform/calendar/days.ts'
import { type Deal, givesAway, type Reward, type Trigger } from './deal.ts'
import { crossesMidnight } from './judge-deal.ts'

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
  const DAY_MS = 86_400_000
  const days = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1
  const before = window !== null && crossesMidnight(window) ? 1 : 0
  // A week has every weekday.
  return Array.from({ length: Math.min(7, days + before) }).some((_, index) =>
    weekdays.includes(((weekdayOf(start) + 7 - before + index) % 7) + 1),
  )
}
