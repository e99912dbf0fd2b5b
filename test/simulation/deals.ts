import { applyReward } from '../../cloud/commerce/deals/preview-cart.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import type { ConstraintType, RewardType, TriggerType } from '../../protocol/model/deal-terms.ts'
import { insist, type CustomerWorld } from './customer-calls.ts'
import { EPOCH } from './scheduler.ts'

const HUB = 1

interface SimulatedDeal {
  trigger: { type: TriggerType; quantity?: number; product_id?: number }
  reward: { type: RewardType; quantity?: number; product_id?: number; discount_pct_or_price?: number }
  constraints: Partial<Record<ConstraintType, string>>
}

/** Every kind of reward, with limits that are fought over, and one that makes an order cost nothing. */
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

export async function insertDeals({ kysely: q }: CloudDatabase): Promise<void> {
  for (const [index, { trigger, reward, constraints }] of deals.entries()) {
    const deal_id = index + 1
    await q
      .insertInto('deals')
      .values({
        id: deal_id,
        hub_id: HUB,
        name: `Deal ${deal_id}`,
        description: null,
        display_text: null,
        image_key: null,
        priority: 0,
        is_active: 1,
        start_day: null,
        end_day: null,
        created_at: EPOCH,
        updated_at: EPOCH,
        deleted_at: null,
      })
      .execute()
    await q
      .insertInto('deal_triggers')
      .values({ deal_id, quantity: null, category_id: null, product_id: null, ...trigger })
      .execute()
    await q
      .insertInto('deal_rewards')
      .values({ deal_id, quantity: null, product_id: null, discount_pct_or_price: null, ...reward })
      .execute()
    for (const [type, value] of Object.entries(constraints))
      await q
        .insertInto('deal_constraints')
        .values({ deal_id, type: type as ConstraintType, value })
        .execute()
  }
}

/** An integrator announces what a customer is about to redeem; not everybody buys then. */
export async function announceDeals(world: CustomerWorld, userId: number): Promise<void> {
  const { chance, coverage } = world
  const product = chance.between(1, 6)
  const answer = await insist(world, ({ context }) =>
    applyReward(
      context,
      { id: HUB, timezone: 'America/Chicago' },
      {
        hub_id: HUB,
        user_id: chance.happens(0.8) ? userId : null,
        device_uuid: chance.happens(0.5) ? `phone ${userId}` : null,
        deal_ids: deals.map((_, index) => index + 1),
        cart_items: [
          {
            product_id: product,
            category_id: 1,
            subcategory_id: null,
            quantity: chance.between(1, 4),
            unit_price: 99 + 101 * product,
          },
        ],
      },
    ),
  )
  if (answer.kind === 'ok') coverage.hit(`deals announced: ${answer.value.deal_applied}`)
}
