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
import { namedEnum } from '../model/named-enum.ts'
import {
  Id,
  Cents,
  Timestamp,
  HubId,
  OrderIdOrNull,
  Success,
  Message,
  Limit,
  NumberCursor,
  NextNumberCursor,
  HasMore,
} from './fields.ts'
import { MIB, type Form } from './form.ts'
import { defineRoutes } from './route.ts'

const read = { kind: 'api', scope: 'promotions:read' } as const
const write = { kind: 'api', scope: 'promotions:write' } as const

const HubPath = z.object({ hub_id: HubId })
const DealPath = z.object({ deal_id: Id.describe('Number of the deal.') })

/** The cart of one user or device. */
const cartFields = {
  hub_id: HubId,
  user_id: Id.nullable()
    .default(null)
    .describe(
      'Number of the customer, for limits per customer. If it is left out: such limits are not checked.',
    ),
  cart_items: CartItems.describe('Lines of the cart.'),
  device_uuid: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .default(null)
    .describe(
      'UUID of the customer’s device, for limits per device. If it is left out: such limits are not checked.',
    ),
}

export const DealStatus = namedEnum('DealStatus', 'State of a deal.', {
  scheduled: 'its first day is still to come.',
  active: 'it runs.',
  expired: 'its last day is over.',
  exhausted: 'its maximum number of redemptions is reached.',
  inactive: 'it is switched off.',
})
export type DealStatus = z.infer<typeof DealStatus>

/** Whether a redemption binds the deal's limits still: pending and completed ones do. */
export const RedemptionStatus = namedEnum(
  'RedemptionStatus',
  'State of a redemption. Pending and completed ones count for the limits of the deal.',
  {
    pending: 'recorded for 30 minutes.',
    completed: 'the order was paid.',
    released: 'the order expired or was cancelled.',
  },
)
export type RedemptionStatus = z.infer<typeof RedemptionStatus>

export const Redemption = z
  .object({
    id: Id.describe('Number of the redemption.'),
    order_id: OrderIdOrNull,
    user_id: Id.nullable().describe('Number of the customer; null if there is none.'),
    device_uuid: z.string().nullable().describe('UUID of the device; null if there is none.'),
    discount_amount: Cents.describe('Discount in cents.'),
    status: RedemptionStatus,
    redeemed_at: Timestamp.describe('Time of the redemption (UTC).'),
  })
  .meta({ id: 'Redemption', description: 'One use of a deal.' })
export type Redemption = z.infer<typeof Redemption>

/** Newest first. */
export const DealRedemptions = z
  .object({
    deal_id: Id.describe('Number of the deal.'),
    status: DealStatus,
    usage: z
      .object({
        total: z.int().describe('Pending and completed redemptions.'),
        limit: z.int().nullable().describe('Maximum number of redemptions; null if there is none.'),
        remaining: z.int().nullable().describe('Redemptions that are left; null if there is no maximum.'),
      })
      .meta({ id: 'DealUsage', description: 'Use of a deal against its limit.' })
      .describe('Uses of the deal.'),
    total_discount: Cents.describe('Discount of the redemptions that `usage.total` counts, in cents.'),
    data: z.array(Redemption).describe('Redemptions, newest first.'),
    next_cursor: NextNumberCursor,
    has_more: HasMore,
  })
  .meta({ id: 'DealRedemptions', description: 'Redemptions of a deal with its use.' })
export type DealRedemptions = z.infer<typeof DealRedemptions>

/** Whether the image must be there is a setting of the deployment, and not the form's business. */
const dealForm = {
  fields: z.object({ dealData: OwnerDealData.describe('Deal as JSON.') }),
  files: { file: { imageBytes: 5 * MIB } },
  folder: 'deals',
} as const satisfies Form

const exampleDeal = {
  name: 'Three for two',
  hub_id: 1,
  description: 'Three bottles of water for the price of two.',
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
      summary: 'List the deals that run at a hub today',
      description:
        'Active deals within their dates that are not used up, highest `priority` first. Weekdays and times of the day are not checked here: `check-eligibility` checks them.',
    },
    'owner.deals.of_hub': {
      at: 'GET /deals/hub/{hub_id}',
      validated: 'private',
      params: HubPath,
      hub: 'hub_id',
      response: z.array(Deal),
      summary: 'List all deals of a hub, active and inactive',
      description: 'With triggers, rewards and constraints.',
    },
    'owner.deals.promo_products': {
      at: 'GET /deals/promo-products/{hub_id}',
      validated: 'private',
      params: HubPath,
      hub: 'hub_id',
      response: z.array(Id),
      summary: 'List the products of the running deals of a hub',
      description:
        'Numbers of the products in the triggers and rewards of the deals of `active/{hub_id}`, each once, ascending.',
    },
    'owner.deals.check_eligibility': {
      at: 'POST /deals/check-eligibility',
      auth: write,
      body: z.strictObject({
        ...cartFields,
        cart_total: z
          .int()
          .min(0)
          .max(MOST_CENTS * 100_000)
          .describe('Total of the cart before deals, in cents. Spending thresholds compare with it.'),
        user_order_count: z
          .int()
          .min(0)
          .nullable()
          .default(null)
          .describe(
            'Number of orders that the customer has paid before. If it is left out: the service counts them, if `user_id` is sent.',
          ),
      }),
      response: z.object({
        eligible_deals: z.array(EligibleDeal).describe('Deals that the cart qualifies for.'),
      }),
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'List the deals that a cart qualifies for',
      description: 'The prices are trusted as they are sent. Nothing is applied.',
      examples: {
        body: { ...exampleCart, cart_total: 447 },
        response: {
          eligible_deals: [
            {
              deal_id: 4,
              deal_name: 'Three for two',
              description: 'Three bottles of water for the price of two.',
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
      body: z.strictObject({
        ...cartFields,
        deal_ids: z.array(Id).min(1).max(50).describe('Numbers of the deals to apply.'),
      }),
      response: RewardResult,
      errors: ['hub_access_denied', 'hub_not_found'],
      idempotent: true,
      summary: 'Apply deals to a cart',
      description:
        'The service records a redemption for each applied deal, pending for 30 minutes, so that its limits bind. When the same user pays an order, the redemption is completed. A deal that does not apply is no error: `deal_applied` is false and `message` gives the reason.',
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
      errors: ['hub_access_denied', 'hub_not_found', 'hub_not_accepting_orders'],
      idempotent: true,
      summary: 'Create a deal with its banner image',
      description:
        '`dealData` is JSON. The image is png, jpeg, webp or gif by its content and has at most 5 MiB. It is required unless the operator has set `DEAL_IMAGE_REQUIRED` to false.',
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
      errors: ['hub_access_denied', 'hub_not_found', 'hub_not_accepting_orders'],
      idempotent: true,
      summary: 'Create a deal',
      description:
        'Every trigger must be met, each by different units. Spending is measured before any deal. A reward with neither product nor quantity applies to the whole cart: its percentage or amount is of the cart, a fixed price is the price of the cart. Any other reward applies to units, and its amount or price is per unit; it takes the cheapest units. A trigger of units repeats the reward for each whole multiple. Units that met a trigger cannot be its free units. Among deals that do not stack, the best saving is applied. Deals that stack are applied together, each unit to one deal: deals on units before deals on the cart, then by `priority`. A deal that can never apply is 422 with the reason, for example a reward of 100 % on the units that its trigger needs, or dates without any of its weekdays.',
      examples: { body: exampleDeal },
    },
    'owner.deals.get': {
      at: 'GET /deals/{deal_id}',
      validated: 'private',
      params: DealPath,
      response: Deal,
      errors: ['deal_not_found'],
      summary: 'Read a deal with its triggers, rewards and constraints',
      description: '`display_image` expires: read the deal again for a new address.',
    },
    'owner.deals.update': {
      at: 'PUT /deals/{deal_id}',
      auth: write,
      params: DealPath,
      body: DealUpdate,
      response: Deal,
      errors: ['deal_not_found', 'hub_not_accepting_orders'],
      summary: 'Rename a deal, switch it on or off, or change its dates',
      description: 'Orders that are being paid keep the deals that they were frozen with.',
      examples: { body: { is_deal_active: false } },
    },
    'owner.deals.delete': {
      at: 'DELETE /deals/{deal_id}',
      auth: write,
      params: DealPath,
      response: z.object({ success: Success, message: Message }),
      errors: ['deal_not_found', 'hub_not_accepting_orders'],
      summary: 'Delete a deal with its triggers, rewards and constraints',
      description: 'Past redemptions stay in the books.',
      examples: { response: { success: true, message: 'The deal was deleted.' } },
    },
    'owner.deals.redemptions': {
      at: 'GET /deals/{deal_id}/redemptions',
      params: DealPath,
      query: z.object({
        limit: Limit,
        cursor: NumberCursor,
      }),
      response: DealRedemptions,
      errors: ['deal_not_found'],
      badValues: { 'query.cursor': 'invalid_cursor' },
      summary: 'List the redemptions of a deal, newest first',
      description: 'The answer starts with the status of the deal and its use against its limit.',
    },
  },
)
