import { z } from 'zod'
import {
  CartItems,
  Deal,
  DealUpdate,
  EligibleDeal,
  MOST_CENTS,
  NewDeal,
  OwnerDealData,
  RewardResult,
} from './deal-objects.ts'
import { Cents, Id, Timestamp } from './fields.ts'
import { MIB, type Form } from './form.ts'
import { defineRoutes } from './route.ts'

const read = { kind: 'api', scope: 'promotions:read' } as const
const write = { kind: 'api', scope: 'promotions:write' } as const

const HubPath = z.object({ hub_id: Id })
const DealPath = z.object({ deal_id: Id })

/** Of one user's or device's cart. */
const cartFields = {
  hub_id: Id,
  user_id: Id.nullable().default(null),
  cart_items: CartItems,
  device_uuid: z.string().min(1).max(200).nullable().default(null),
}

export const DealStatus = z
  .enum(['scheduled', 'active', 'expired', 'exhausted', 'inactive'])
  .meta({ id: 'DealStatus' })
export type DealStatus = z.infer<typeof DealStatus>

/** Whether a redemption binds the deal's limits still: pending and completed ones do. */
export const RedemptionStatus = z.enum(['pending', 'completed', 'released']).meta({ id: 'RedemptionStatus' })
export type RedemptionStatus = z.infer<typeof RedemptionStatus>

export const Redemption = z
  .object({
    id: Id,
    order_id: Id.nullable(),
    user_id: Id.nullable(),
    device_uuid: z.string().nullable(),
    discount_amount: Cents,
    status: RedemptionStatus,
    redeemed_at: Timestamp,
  })
  .meta({ id: 'Redemption' })
export type Redemption = z.infer<typeof Redemption>

/** Newest first. */
export const DealRedemptions = z
  .object({
    deal_id: Id,
    status: DealStatus,
    usage: z.object({ total: z.int(), limit: z.int().nullable(), remaining: z.int().nullable() }),
    /** Of the redemptions that `usage.total` counts. */
    total_discount: Cents,
    data: z.array(Redemption),
    next_cursor: Id.nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'DealRedemptions' })
export type DealRedemptions = z.infer<typeof DealRedemptions>

/** Whether the image must be there is a setting of the deployment, and not the form's business. */
const dealForm = {
  fields: z.object({ dealData: OwnerDealData }),
  files: { file: { imageBytes: 5 * MIB } },
  folder: 'deals',
} as const satisfies Form

const exampleDeal = {
  name: 'Three for two',
  hub_id: 1,
  description: 'Of three bottles of water one is free.',
  start: '2025-06-01',
  end: '2025-08-31',
  triggers: [{ type: 'QUANTITY', quantity: 2, category: null, category_id: null, product_id: 7 }],
  rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 7, discount_pct_or_price: null }],
  constraints: [{ type: 'SALEAMT', value: '500' }],
}
const exampleCart = {
  hub_id: 1,
  user_id: 12,
  cart_items: [{ product_id: 7, category_id: 3, quantity: 3, unit_price: 149 }],
}

/** O §4.7, deals. Paths of one word stand before `{deal_id}`, which would take them for an id. */
export const dealRoutes = defineRoutes(
  { interface: 'owner', auth: read, rate: 'standard', tag: 'Deals' },
  {
    'owner.deals.active': {
      at: 'GET /deals/active/{hub_id}',
      validated: 'private',
      params: HubPath,
      hub: 'hub_id',
      response: z.array(
        Deal.pick({
          id: true,
          name: true,
          description: true,
          display_text: true,
          display_image: true,
          priority: true,
        }),
      ),
      summary: 'The deals that run at a hub today',
      description:
        'Active, within their dates and not used up, those of higher `priority` first. Their weekdays and times of the day are not looked at: check-eligibility does.',
    },
    'owner.deals.of_hub': {
      at: 'GET /deals/hub/{hub_id}',
      validated: 'private',
      params: HubPath,
      hub: 'hub_id',
      response: z.array(Deal),
      summary: 'All deals of a hub, active and inactive',
    },
    'owner.deals.promo_products': {
      at: 'GET /deals/promo-products/{hub_id}',
      validated: 'private',
      params: HubPath,
      hub: 'hub_id',
      response: z.array(Id),
      summary: 'Products that the running deals of a hub are about',
      description: 'The ids in triggers and rewards of the deals of `active/{hub_id}`, each once, ascending.',
    },
    'owner.deals.check_eligibility': {
      at: 'POST /deals/check-eligibility',
      auth: write,
      body: z.strictObject({
        ...cartFields,
        cart_total: z
          .int()
          .min(0)
          .max(MOST_CENTS * 100_000),
        /** Orders that the user has paid before; counted here where absent and a user is named. */
        user_order_count: z.int().min(0).nullable().default(null),
      }),
      response: z.object({ eligible_deals: z.array(EligibleDeal) }),
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'Which deals a cart qualifies for',
      description:
        'Prices are trusted as sent, and `cart_total` is what spending thresholds are measured by. Nothing is applied. `potential_savings` is 0 where the cart lacks what the deal would make cheaper.',
      examples: {
        body: { ...exampleCart, cart_total: 447 },
        response: {
          eligible_deals: [
            {
              deal_id: 4,
              deal_name: 'Three for two',
              description: 'Of three bottles of water one is free.',
              display_text: null,
              reward_description: '1 × Still Water 500 ml free',
              potential_savings: 149,
              start: '2025-06-01',
              end: '2025-08-31',
              stackable: false,
            },
          ],
        },
      },
    },
    'owner.deals.apply_reward': {
      at: 'POST /deals/apply-reward',
      auth: write,
      body: z.strictObject({ ...cartFields, deal_ids: z.array(Id).min(1).max(50) }),
      response: RewardResult,
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'Apply deals to a cart',
      description:
        'Each deal that applies is redeemed, pending for 30 minutes, so that its limits bind; paying an order of the same user completes it. A deal that does not apply is no error: `message` says why.',
      examples: {
        body: { deal_ids: [4], ...exampleCart },
        response: {
          success: true,
          deal_applied: true,
          modified_cart_items: [
            {
              product_id: 7,
              category_id: 3,
              quantity: 3,
              original_unit_price: 149,
              discounted_unit_price: 0,
              discount_applied: 149,
              quantity_discounted: 1,
            },
          ],
          original_cart_total: 447,
          discounted_cart_total: 298,
          total_savings: 149,
          message: 'Applied: Three for two.',
        },
      },
    },
    'owner.deals.create_from_owner': {
      at: 'POST /deals/create-from-owner',
      auth: write,
      form: dealForm,
      response: Deal.pick({ id: true, name: true, is_deal_active: true, display_image: true }),
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'Create a deal with its banner image',
      description:
        '`dealData` is JSON. The image is png, jpeg, webp or gif by its content, and has at most 5 MiB; it is required unless the operator says otherwise (DEAL_IMAGE_REQUIRED).',
      examples: {
        body: {
          dealData: {
            deal: { name: 'Three for two', hub_id: 1, start: '2025-06-01', end: '2025-08-31' },
            trigger: { type: 'QUANTITY', quantity: 2, product_id: 7 },
            reward: { type: 'FREE_ITEM', quantity: 1, product_id: 7 },
          },
        },
      },
    },
    'owner.deals.create': {
      at: 'POST /deals/',
      auth: write,
      body: NewDeal,
      response: Deal,
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'Create a deal',
      description:
        'Every trigger must be met, each by units of its own; spending is measured before any deal. A reward with neither product nor quantity is on the whole cart: its percentage or amount is of the cart, a fixed price is the cart’s. Any other is on units, and its amount or price is per unit. Of what a deal may choose from it takes the cheapest units. A trigger of units repeats the reward for each whole multiple, and what is given away is not what met the trigger. Of deals that do not stack the best one is applied; those that do are applied together, each unit to one deal: deals on units before deals on the cart, then by `priority`. A deal that can never apply is 422, and the message says why: a reward that makes free the very units that its trigger asks for (100 % off the trigger’s product), or dates without any of its weekdays.',
      examples: { body: exampleDeal },
    },
    'owner.deals.get': {
      at: 'GET /deals/{deal_id}',
      validated: 'private',
      params: DealPath,
      response: Deal,
      errors: ['deal_not_found'],
      summary: 'A deal with its triggers, rewards and constraints',
    },
    'owner.deals.update': {
      at: 'PUT /deals/{deal_id}',
      auth: write,
      params: DealPath,
      body: DealUpdate,
      response: Deal,
      errors: ['deal_not_found'],
      summary: 'Rename a deal, switch it on or off, move its dates',
      description: 'Orders that are frozen keep the deals that they were frozen with.',
      examples: { body: { is_deal_active: false } },
    },
    'owner.deals.delete': {
      at: 'DELETE /deals/{deal_id}',
      auth: write,
      params: DealPath,
      response: z.object({ success: z.boolean(), message: z.string() }),
      errors: ['deal_not_found'],
      summary: 'Delete a deal with its triggers, rewards and constraints',
      description: 'What was redeemed stays in the books.',
      examples: { response: { success: true, message: 'The deal was deleted.' } },
    },
    'owner.deals.redemptions': {
      at: 'GET /deals/{deal_id}/redemptions',
      params: DealPath,
      query: z.object({
        limit: z.int().min(1).max(100).default(20),
        cursor: Id.nullable().default(null),
      }),
      response: DealRedemptions,
      errors: ['deal_not_found'],
      badValues: { 'query.cursor': 'invalid_cursor' },
      summary: 'How often a deal was redeemed, and by whom',
      description: '`cursor` is the `next_cursor` of the page before.',
    },
  },
)
