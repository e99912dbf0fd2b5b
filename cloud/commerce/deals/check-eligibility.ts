import type { z } from 'zod'
import type { EligibleDeal } from '../../../protocol/contract/deal-objects.ts'
import type { CloudContext } from '../../platform/context.ts'
import { describeRewards } from './describe-rewards.ts'
import { applyDeal } from './engine/apply-deal.ts'
import { offerDeals } from './offer.ts'
import { readCart, type SentCart } from './preview-cart.ts'

export interface EligibilityRequest extends SentCart {
  cart_total: number
  user_order_count: number | null
}

/** The deals for which a cart qualifies (O §4.7), with what each would save by itself. Nothing is applied. */
export async function checkEligibility(
  { db, runtime, settings }: Pick<CloudContext, 'db' | 'runtime' | 'settings'>,
  hub: { id: number; timezone: string },
  request: EligibilityRequest,
): Promise<z.input<typeof EligibleDeal>[]> {
  const q = db.kysely
  const { at } = await readCart(q, hub, request)
  const { cart, circumstances, judged } = await offerDeals(
    q,
    { runtime },
    { ...at, total: request.cart_total, paidOrders: request.user_order_count },
  )
  const eligible = judged.filter(({ obstacle }) => obstacle === null)
  const named = eligible.flatMap(({ deal }) => deal.rewards.flatMap(({ productId }) => productId ?? []))
  const products =
    named.length === 0
      ? []
      : await q.selectFrom('products').select(['id', 'name']).where('id', 'in', named).execute()
  const names = new Map(products.map(({ id, name }) => [id, name]))
  const all = cart.lines.map(({ quantity }) => quantity)
  return eligible.map(({ deal, stored: { row } }) => ({
    deal_id: deal.id,
    deal_name: deal.name,
    description: row.description,
    display_text: row.display_text,
    reward_description: describeRewards(deal.rewards, (id) => names.get(id)!, settings.currency),
    potential_savings: applyDeal(deal, cart, circumstances.buyer, all)?.saving ?? 0,
    start: deal.start,
    end: deal.end,
    stackable: deal.terms.stackable,
  }))
}
