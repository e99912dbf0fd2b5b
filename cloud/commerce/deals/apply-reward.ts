import type { RewardResult } from '../../../protocol/contract/deal-objects.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { dealsOfHub, toEngine } from './deal-rows.ts'
import { applyDeal } from './engine/apply-deal.ts'
import type { Plan } from './engine/choose-deals.ts'
import { statusOf } from './engine/judge-deal.ts'
import { holdOffer, planOf, type Offer } from './offer.ts'
import { readCart, type ReadCart, type SentCart } from './preview-cart.ts'
import { announce } from './redemptions.ts'
import { explain, type WhyNot } from './why-not.ts'

export interface RewardRequest extends SentCart {
  deal_ids: number[]
}

/**
 * Applies deals to a cart at the prices sent (O §4.7), and announces their redemption in the same transaction, so that
 * their limits bind. Of deals that do not combine the best is applied. A deal that does not apply is no error.
 */
export async function applyReward(
  { db, runtime, settings, checkpoint }: CloudContext,
  hub: { id: number; timezone: string },
  request: RewardRequest,
): Promise<RewardResult> {
  const ids = [...new Set(request.deal_ids)]
  const result = await db.transact(async (tx) => {
    const cart = await readCart(tx.q, hub, request)
    const offer = await holdOffer(tx, { runtime }, cart.at)
    const plan = planOf(offer, new Set(ids))
    const expiresAt = runtime.clock.now() + settings.announcedRedemptionMs
    await announce(tx, { runtime }, cart.at.shopper, plan.applications, expiresAt)
    const refused = ids.filter((id) => !plan.applications.some(({ deal }) => deal.id === id))
    const others = refused.length === 0 ? [] : await explainAll(tx.q, hub.id, offer, refused)
    return resultOf(cart, plan, others)
  })
  checkpoint('deals.announced')
  return result
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

/** Why deals were not applied, of which nothing is asked but their ids. */
async function explainAll(
  q: Queries,
  hubId: number,
  { cart, circumstances, judged }: Offer,
  ids: readonly number[],
): Promise<string[]> {
  const stored = (await dealsOfHub(q, hubId)).map(toEngine)
  const all = cart.lines.map(({ quantity }) => quantity)
  return ids.map((id) => {
    const deal = stored.find((one) => one.id === id)
    if (!deal) return explain({ id }, 'unknown')
    const verdict = judged.find((one) => one.deal.id === id)
    return explain(deal, verdict ? (verdict.obstacle ?? idle()) : status())

    function idle(): WhyNot {
      return applyDeal(deal!, cart, circumstances.buyer, all) ? 'others_save_more' : 'nothing_cheaper'
    }
    /** It does not run; or it could not be held, as its limit has come free only now. */
    function status(): WhyNot {
      const where = statusOf(deal!, circumstances.time.day, 0)
      return where === 'active' ? 'just_taken' : where
    }
  })
}
