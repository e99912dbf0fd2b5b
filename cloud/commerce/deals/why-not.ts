import type { Obstacle } from './engine/judge-deal.ts'

/** Why a deal did nothing for a cart that it was asked for. */
export type WhyNot = Obstacle | 'unknown' | 'nothing_cheaper' | 'others_save_more' | 'just_taken'

const reasons: Record<WhyNot, string> = {
  unknown: 'this hub has no such deal',
  inactive: 'it is switched off',
  scheduled: 'it has not begun',
  expired: 'it is over',
  exhausted: 'it has been used as often as it may be',
  wrong_weekday: 'it does not apply today',
  wrong_time: 'it does not apply at this time of the day',
  cart_too_small: 'the cart is worth too little',
  not_first_order: 'it is for a first order, of a customer who is known',
  user_limit: 'this customer has used it as often as one may',
  device_limit: 'it has been used from this device as often as it may be',
  trigger_not_met: 'the cart lacks what it asks for',
  nothing_cheaper: 'it makes nothing in this cart cheaper',
  others_save_more: 'what other deals save it cannot be combined with',
  just_taken: 'somebody else is using it at this moment',
}

export const explain = (deal: { id: number; name?: string }, why: WhyNot): string =>
  `Deal ${deal.id}${deal.name === undefined ? '' : ` (${deal.name})`} was not applied: ${reasons[why]}.`
