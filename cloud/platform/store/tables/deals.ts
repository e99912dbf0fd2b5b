import { RedemptionStatus } from '../../../../protocol/contract/deals.ts'
import { constraintTypes, rewardTypes, triggerTypes } from '../../../../protocol/model/deal-terms.ts'
import { defineTable, flag, growing, id, instant, int, oneOf, text } from '../table.ts'

/**
 * Deals (O §2) and their redemptions. A redemption belongs to the books. It contains the numbers of its order and user,
 * and remains after the deletion of either or of the deal.
 */
export const dealTables = {
  deals: defineTable({
    id,
    hub_id: int.references('hubs').fixed,
    name: text,
    description: text.nullable,
    display_text: text.nullable,
    /** In the media store. */
    image_key: text.nullable,
    priority: int,
    is_active: flag,
    /** The cart's requirement for a discount: `product 12`, `category 3`, or the empty text. */
    need: text.fixed,
    /** Days in the hub's zone, inclusive. Null: unlimited. */
    start_day: text.nullable,
    end_day: text.nullable,
    created_at: instant.fixed,
    updated_at: instant,
    /** The row remains for its redemptions. No caller sees it. */
    deleted_at: instant.nullable,
  })
    .check('start_day is null or end_day is null or start_day <= end_day')
    .index('deals_by_hub', ['hub_id', 'id'], 'deleted_at is null')
    .index('deals_by_need', ['hub_id', 'need'], 'deleted_at is null'),
  deal_triggers: defineTable({
    id,
    deal_id: int.references('deals').fixed,
    type: growing(triggerTypes).fixed,
    quantity: int.check('> 0').nullable.fixed,
    category_id: int.references('categories').nullable.fixed,
    product_id: int.references('products').nullable.fixed,
  }).index('deal_triggers_by_deal', ['deal_id']),
  deal_rewards: defineTable({
    id,
    deal_id: int.references('deals').fixed,
    type: growing(rewardTypes).fixed,
    quantity: int.check('> 0').nullable.fixed,
    product_id: int.references('products').nullable.fixed,
    discount_pct_or_price: int.check('>= 0').nullable.fixed,
  }).index('deal_rewards_by_deal', ['deal_id']),
  deal_constraints: defineTable({
    id,
    deal_id: int.references('deals').fixed,
    type: growing(constraintTypes).fixed,
    value: text.fixed,
  }).unique('deal_id', 'type'),
  deal_redemptions: defineTable({
    id,
    deal_id: int.references('deals').fixed,
    /** Null while it is only an integrator's announcement. */
    order_id: int.nullable,
    /** If an order without a payment became an announcement again: its cart. Deleted with that cart. */
    cart_id: int.nullable,
    user_id: int.nullable,
    /** Null after the deletion of its user. `customer_marks` still leads to that user. */
    device_uuid: text.nullable,
    discount_amount: int.check('> 0'),
    /** `pending` and `completed` redemptions count against the deal's limits. */
    status: oneOf(RedemptionStatus.options),
    redeemed_at: instant,
    /** For an announcement: when it stops counting if no order uses it. */
    expires_at: instant.nullable.fixed,
  })
    .check('order_id is not null or expires_at is not null')
    .check("order_id is not null or status <> 'completed'")
    .index('deal_redemptions_of_carts', ['cart_id'], 'cart_id is not null')
    .index('deal_redemptions_announced', ['expires_at'], "order_id is null and status = 'pending'")
    .index('deal_redemptions_binding', ['deal_id', 'user_id'], "status <> 'released'")
    .index('deal_redemptions_by_deal', ['deal_id', 'id'])
    .index(
      'deal_redemptions_by_device',
      ['deal_id', 'device_uuid'],
      "status <> 'released' and device_uuid is not null",
    )
    .uniqueIndex(
      'deal_redemptions_by_order',
      ['order_id', 'deal_id'],
      "order_id is not null and status <> 'released'",
    )
    .index('deal_redemptions_by_age', ['expires_at']),
}
