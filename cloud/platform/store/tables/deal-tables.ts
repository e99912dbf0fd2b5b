import type { Generated } from 'kysely'
import type { ConstraintType, RewardType, TriggerType } from '../../../../protocol/model/deal-terms.ts'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Deals (O §2, contract §8) and what came of them. */
export interface DealTables {
  deals: {
    id: Generated<number>
    hub_id: Fixed<number>
    name: string
    description: string | null
    display_text: string | null
    /** In the media store. */
    image_key: string | null
    priority: number
    is_active: Flag
    /** Days of the hub, inclusive; null is open. */
    start_day: string | null
    end_day: string | null
    created_at: Fixed<Instant>
    updated_at: Instant
    /** Kept for the sake of its redemptions; nobody else gets to see it. */
    deleted_at: Instant | null
  }
  deal_triggers: {
    id: Generated<number>
    deal_id: Fixed<number>
    type: Fixed<TriggerType>
    quantity: Fixed<number | null>
    category_id: Fixed<number | null>
    product_id: Fixed<number | null>
  }
  deal_rewards: {
    id: Generated<number>
    deal_id: Fixed<number>
    type: Fixed<RewardType>
    quantity: Fixed<number | null>
    product_id: Fixed<number | null>
    discount_pct_or_price: Fixed<number | null>
  }
  deal_constraints: {
    id: Generated<number>
    deal_id: Fixed<number>
    type: Fixed<ConstraintType>
    value: Fixed<string>
  }
  deal_redemptions: {
    id: Generated<number>
    deal_id: Fixed<number>
    /** Null while it is no more than an integrator's announcement. */
    order_id: number | null
    user_id: number | null
    device_uuid: Fixed<string | null>
    discount_amount: number
    /** pending and completed ones bind the deal's limits. */
    status: 'pending' | 'completed' | 'released'
    redeemed_at: Instant
    /** Of an announcement: until when it binds while no order has taken it up. */
    expires_at: Fixed<Instant | null>
  }
}
