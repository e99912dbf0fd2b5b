import { rewardOf, triggerOf } from '../../cloud/commerce/deals/deal-rows.ts'
import { needOf } from '../../cloud/commerce/deals/engine/deal.ts'
import { applyReward } from '../../cloud/commerce/deals/preview-cart.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import type { ConstraintType, RewardType, TriggerType } from '../../protocol/model/deal-terms.ts'
import { retryCall, type CustomerWorld } from './customer-calls.ts'
import { productOf, PRODUCTS } from './hardware.ts'
import { EPOCH } from './scheduler.ts'

interface SimulatedDeal {
  trigger: { type: TriggerType; quantity?: number; product_id?: number }
  reward: { type: RewardType; quantity?: number; product_id?: number; discount_pct_or_price?: number }
  constraints: Partial<Record<ConstraintType, string>>
}

/** Every kind of reward, with limits that customers compete for, and a reward that makes an order free. */
const deals: readonly SimulatedDeal[] = [
  {
    trigger: { type: 'QUANTITY', quantity: 2, product_id: 3 },
    reward: { type: 'FREE_ITEM', quantity: 1, product_id: 3 },
    constraints: { STACKABLE: '1' },
  },
  {
    trigger: { type: 'ALWAYS' },
    reward: { type: 'PERCENT_OFF', discount_pct_or_price: 15 },
    constraints: { SALEAMT: '600', MAXUSES: '5' },
  },
  {
    trigger: { type: 'ALWAYS' },
    reward: { type: 'AMOUNT_OFF', quantity: 1, product_id: 6, discount_pct_or_price: 75 },
    constraints: { STACKABLE: '1', MAXUSES_USER: '1' },
  },
  {
    trigger: { type: 'FIRST_ORDER' },
    reward: { type: 'PERCENT_OFF', discount_pct_or_price: 30 },
    constraints: { MAXDISCOUNT: '101' },
  },
  {
    trigger: { type: 'QUANTITY', quantity: 3 },
    reward: { type: 'CHEAPEST_FREE', quantity: 1 },
    constraints: { MAXUSES: '3' },
  },
  {
    trigger: { type: 'QUANTITY', quantity: 1, product_id: 1 },
    reward: { type: 'FIXED_PRICE', quantity: 1, product_id: 1, discount_pct_or_price: 0 },
    constraints: {},
  },
  {
    trigger: { type: 'ALWAYS' },
    reward: { type: 'FREE_ITEM', quantity: 1, product_id: 2 },
    constraints: { MAXUSES: '2', MAXUSES_USER: '1' },
  },
]

/** The id of a hub's deal. */
const dealId = (hubId: number, index: number): number => (hubId - 1) * deals.length + index + 1

export async function insertDeals({ kysely: q }: CloudDatabase, hubId: number): Promise<void> {
  const own = <T extends { product_id?: number }>(part: T): T =>
    part.product_id === undefined ? part : { ...part, product_id: productOf(hubId, part.product_id) }
  for (const [index, { trigger, reward, constraints }] of deals.entries()) {
    const deal_id = dealId(hubId, index)
    const ofTrigger = { quantity: null, category_id: null, product_id: null, ...own(trigger) }
    const ofReward = { quantity: null, product_id: null, discount_pct_or_price: null, ...own(reward) }
    await q
      .insertInto('deals')
      .values({
        id: deal_id,
        hub_id: hubId,
        name: `Deal ${deal_id}`,
        description: null,
        display_text: null,
        image_key: null,
        priority: 0,
        is_active: 1,
        need: needOf({ triggers: [triggerOf(ofTrigger)], rewards: [rewardOf(ofReward)] }),
        start_day: null,
        end_day: null,
        created_at: EPOCH,
        updated_at: EPOCH,
        deleted_at: null,
      })
      .execute()
    await q
      .insertInto('deal_triggers')
      .values({ deal_id, ...ofTrigger })
      .execute()
    await q
      .insertInto('deal_rewards')
      .values({ deal_id, ...ofReward })
      .execute()
    for (const [type, value] of Object.entries(constraints))
      await q
        .insertInto('deal_constraints')
        .values({ deal_id, type: type as ConstraintType, value })
        .execute()
  }
}

/** An integrator announces that a customer is about to redeem deals; some customers then do not buy. */
export async function announceDeals(
  world: CustomerWorld,
  { userId, hubId }: { userId: number; hubId: number },
): Promise<void> {
  const { chance, coverage } = world
  const nth = chance.between(1, PRODUCTS)
  const answer = await retryCall(world, ({ context }) =>
    applyReward(
      context,
      { id: hubId, timezone: 'America/Chicago' },
      {
        hub_id: hubId,
        user_id: chance.happens(0.8) ? userId : null,
        device_uuid: chance.happens(0.5) ? `phone ${userId}` : null,
        deal_ids: deals.map((_, index) => dealId(hubId, index)),
        cart_items: [
          {
            product_id: productOf(hubId, nth),
            category_id: 1,
            subcategory_id: null,
            quantity: chance.between(1, 4),
            unit_price: 99 + 101 * nth,
          },
        ],
      },
    ),
  )
  if (answer.kind === 'ok') coverage.hit(`deals announced: ${answer.value.deal_applied}`)
}
