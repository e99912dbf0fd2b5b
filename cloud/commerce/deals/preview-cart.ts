import type { z } from 'zod'
import type { CartItems, EligibleDeal, RewardResult } from '../../../protocol/contract/deal-objects.ts'
import type { RewardType } from '../../../protocol/model/deal-terms.ts'
import { moneyText } from '../../../protocol/model/money.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { dealsOfHub, toEngine } from './deal-rows.ts'
import { savingAlone, type Plan } from './engine/apply-deal.ts'
import type { Reward } from './engine/deal.ts'
import { type Obstacle, statusOf } from './engine/judge-deal.ts'
import { type CartAtHub, holdOffer, type Offer, offerDeals, planner } from './offer.ts'
import { announce } from './redemptions.ts'

/** A cart in an integrator's request. */
interface SentCart {
  hub_id: number
  user_id: number | null
  device_uuid: string | null
  cart_items: z.output<typeof CartItems>
}

/** The cart with missing categories taken from the hub's products, and its lines for the engine. */
async function readCart(
  q: Queries,
  hub: { id: number; timezone: string },
  { cart_items: items, user_id, device_uuid }: SentCart,
) {
  const unknown = items.filter(({ category_id }) => category_id === null).map((item) => item.product_id)
  const products =
    unknown.length === 0
      ? []
      : await q
          .selectFrom('products')
          .select(['id', 'category_id', 'subcategory_id'])
          .where('hub_id', '=', hub.id)
          .where('id', 'in', unknown)
          .execute()
  const byId = new Map(products.map((product) => [product.id, product]))
  const completed = items.map((item) => ({
    ...item,
    category_id: item.category_id ?? byId.get(item.product_id)?.category_id ?? null,
    subcategory_id: item.subcategory_id ?? byId.get(item.product_id)?.subcategory_id ?? null,
  }))
  const at: CartAtHub = {
    hub,
    shopper: { userId: user_id, deviceUuid: device_uuid, takesUp: false },
    lines: completed.map((item) => ({
      productId: item.product_id,
      categoryIds: [item.category_id, item.subcategory_id].filter((id) => id !== null),
      quantity: item.quantity,
      unitPrice: item.unit_price,
    })),
  }
  return { items: completed, at }
}
type ReadCart = Awaited<ReturnType<typeof readCart>>

interface EligibilityRequest extends SentCart {
  cart_total: number
  user_order_count: number | null
}

/** The deals for which a cart qualifies (O §4.7), each with its own saving. Nothing is applied. */
export async function checkEligibility(
  context: CloudContext,
  hub: { id: number; timezone: string },
  request: EligibilityRequest,
): Promise<z.input<typeof EligibleDeal>[]> {
  const q = context.db.kysely
  const { at } = await readCart(q, hub, request)
  const { cart, circumstances, judged } = await offerDeals(
    q,
    context,
    { ...at, total: request.cart_total, paidOrders: request.user_order_count },
    'all',
  )
  const eligible = judged.filter(({ obstacle }) => obstacle === null)
  const named = eligible.flatMap(({ deal }) => deal.rewards.flatMap(({ productId }) => productId ?? []))
  const products =
    named.length === 0
      ? []
      : await q.selectFrom('products').select(['id', 'name']).where('id', 'in', named).execute()
  const names = new Map(products.map(({ id, name }) => [id, name]))
  return eligible.map(({ deal, stored: { row } }) => ({
    deal_id: deal.id,
    deal_name: deal.name,
    description: row.description,
    display_text: row.display_text,
    reward_description: describeRewards(deal.rewards, (id) => names.get(id)!, context.settings.currency),
    potential_savings: savingAlone(deal, cart, circumstances.buyer),
    start: deal.start,
    end: deal.end,
    stackable: deal.terms.stackable,
  }))
}

interface Words {
  /** `2 × Cola`, `Cola`, `2 items`, `the whole cart` */
  what: string
  each: string
  value: number
  money: string
}

const sentences: Record<RewardType, (words: Words) => string> = {
  FREE_ITEM: ({ what }) => `${what} free`,
  PERCENT_OFF: ({ what, value }) => `${value}% off ${what}`,
  AMOUNT_OFF: ({ what, each, money }) => `${money} off ${what}${each}`,
  FIXED_PRICE: ({ what, each, money }) => `${what} for ${money}${each}`,
  CHEAPEST_FREE: ({ what }) => `the cheapest of ${what} free`,
}

/** The rewards of a deal in words; product names by id. */
function describeRewards(
  rewards: readonly Reward[],
  nameOf: (productId: number) => string,
  currency: string,
): string {
  return rewards
    .map(({ type, quantity, productId, value }) => {
      const name = productId === null ? null : nameOf(productId)
      const isCart = name === null && quantity === null
      return sentences[type]({
        what: isCart ? 'the whole cart' : counted(quantity, name),
        each: isCart || quantity === 1 ? '' : ' each',
        value,
        money: moneyText(value, currency),
      })
    })
    .join(', ')
}

function counted(quantity: number | null, name: string | null): string {
  if (name === null) return quantity === 1 ? 'one item' : `${quantity} items`
  return quantity === null ? name : `${quantity} × ${name}`
}

interface RewardRequest extends SentCart {
  deal_ids: number[]
}

/**
 * Applies deals to a cart at the given prices (O §4.7). In the same transaction it stores pending redemptions, so that
 * the deals' limits hold. If deals do not combine, it applies the best one. A deal that does not apply is no error.
 */
export async function applyReward(
  context: CloudContext,
  hub: { id: number; timezone: string },
  request: RewardRequest,
): Promise<RewardResult> {
  const { db, runtime, settings, checkpoint } = context
  const ids = [...new Set(request.deal_ids)]
  const cart = await readCart(db.kysely, hub, request)
  const plan = planner(new Set(ids))
  // Chosen before the transaction, because the choice takes processor time while others wait for the limits.
  plan(await offerDeals(db.kysely, context, cart.at, { ids }))
  const applied = await db.transact(async (tx) => {
    const offer = await holdOffer(tx, context, cart.at, { ids })
    const held = { offer, plan: plan(offer) }
    const expiresAt = runtime.clock.now() + settings.announcedRedemptionMs
    await announce(tx, context, cart.at.shopper, held.plan.applications, expiresAt)
    return held
  })
  checkpoint('deals.announced')
  const refused = ids.filter((id) => !applied.plan.applications.some(({ deal }) => deal.id === id))
  const others = refused.length === 0 ? [] : await explainAll(db.kysely, hub.id, applied, refused)
  return resultOf(cart, applied.plan, others)
}

function resultOf({ items }: ReadCart, plan: Plan, others: readonly string[]): RewardResult {
  const original = items.reduce((sum, { quantity, unit_price }) => sum + quantity * unit_price, 0)
  const applied = plan.applications.map(({ deal }) => deal.name)
  return {
    success: true,
    deal_applied: applied.length > 0,
    modified_cart_items: items.map(({ product_id, category_id, quantity, unit_price }, index) => {
      const discount = plan.discounts[index]!
      const units = discount === 0 ? 0 : plan.units[index]!
      return {
        product_id,
        category_id,
        quantity,
        original_unit_price: unit_price,
        discounted_unit_price: units === 0 ? unit_price : Math.round(unit_price - discount / units),
        discount_applied: discount,
        quantity_discounted: units,
      }
    }),
    original_cart_total: original,
    discounted_cart_total: original - plan.saving,
    total_savings: plan.saving,
    message: [...(applied.length > 0 ? [`Applied: ${applied.join(', ')}.`] : []), ...others].join(' '),
  }
}

/** The reasons why deals were not applied, for deals that are known only by id. */
async function explainAll(
  q: Queries,
  hubId: number,
  { offer: { cart, circumstances, judged }, plan }: { offer: Offer; plan: Plan },
  ids: readonly number[],
): Promise<string[]> {
  const stored = (await dealsOfHub(q, hubId, ids)).map(toEngine)
  return ids.map((id) => {
    const deal = stored.find((one) => one.id === id)
    if (!deal) return explain({ id }, 'unknown')
    const verdict = judged.find((one) => one.deal.id === id)
    return explain(deal, verdict ? (verdict.obstacle ?? idle()) : status())

    function idle(): WhyNot {
      if (savingAlone(deal!, cart, circumstances.buyer) === 0) return 'nothing_cheaper'
      const isStack = [deal!, ...plan.applications.map((one) => one.deal)].every(
        ({ terms }) => terms.stackable,
      )
      return isStack ? 'less_together' : 'others_save_more'
    }
    /** The deal does not run; or its limit was used up and has become free only now. */
    function status(): WhyNot {
      const where = statusOf(deal!, circumstances.time.day, 0)
      return where === 'active' ? 'just_taken' : where
    }
  })
}

/** Why a requested deal has no effect on a cart. */
type WhyNot = Obstacle | 'unknown' | 'nothing_cheaper' | 'others_save_more' | 'less_together' | 'just_taken'

const reasons: Record<WhyNot, string> = {
  unknown: 'this hub has no such deal',
  inactive: 'it is switched off',
  scheduled: 'it has not started',
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
  less_together: 'without it the others save more',
  just_taken: 'another customer is using it at this moment',
}

const explain = (deal: { id: number; name?: string }, why: WhyNot): string =>
  `Deal ${deal.id}${deal.name === undefined ? '' : ` (${deal.name})`} was not applied: ${reasons[why]}.`
