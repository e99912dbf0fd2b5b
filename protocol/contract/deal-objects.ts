import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { constraintProblem, constraintTypes, rewardTypes, triggerTypes } from '../model/deal-terms.ts'
import { valuesIn } from '../model/named-enum.ts'
import { Id, Cents, HubId, ProductId, Success } from './fields.ts'

/** The calendar day of a hub. */
export const DealDate = z.iso.date()

const TriggerType = z.enum(triggerTypes).meta({
  id: 'DealTriggerType',
  description: valuesIn('Condition of a deal.', {
    QUANTITY: 'at least `quantity` units of the product or category; of any product if neither is named.',
    CATEGORY: 'units of the category.',
    SPEND: 'a cart of at least `quantity` cents.',
    FIRST_ORDER: 'the first order of a customer; never met by guests.',
    ALWAYS: 'every cart.',
  } satisfies Record<(typeof triggerTypes)[number], string>),
})
const RewardType = z.enum(rewardTypes).meta({
  id: 'DealRewardType',
  description: valuesIn('Reward of a deal.', {
    FREE_ITEM: 'units of the product are free.',
    PERCENT_OFF: 'a percentage off.',
    AMOUNT_OFF: 'cents off.',
    FIXED_PRICE: 'a price in cents.',
    CHEAPEST_FREE: 'the cheapest units are free.',
  } satisfies Record<(typeof rewardTypes)[number], string>),
})
const ConstraintType = z.enum(constraintTypes).meta({
  id: 'DealConstraintType',
  description: valuesIn('Limit of a deal.', {
    SALEAMT: 'minimum of the cart in cents.',
    MAXDISCOUNT: 'maximum discount in cents.',
    MAXUSES: 'maximum number of redemptions.',
    MAXUSES_USER: 'maximum number of redemptions per customer.',
    MAXUSES_DEVICE: 'maximum number of redemptions per device.',
    FIRSTORDER: '1: only the first order of a customer; never met by guests.',
    STACKABLE: '1: can be combined with other deals; 0 (default): cannot.',
    WEEKDAYS: 'weekdays, Monday is 1, such as `1,2,5`.',
    TIMEWINDOW: 'times of the day in the hub’s time zone, such as `11:00-14:00`.',
  } satisfies Record<(typeof constraintTypes)[number], string>),
})

const TriggerFields = z.object({
  type: TriggerType,
  quantity: z
    .int()
    .nullable()
    .describe('Units, or cents for `SPEND`; null if the trigger needs no quantity.'),
  category: z.string().nullable().describe('Name of the category; null for any.'),
  category_id: Id.nullable().describe('Number of the category; null for any.'),
  product_id: Id.nullable().describe('Number of the product; null for any.'),
})
const RewardFields = z.object({
  type: RewardType,
  quantity: z.int().nullable().describe('Units that the reward affects; null for all.'),
  product_id: Id.nullable().describe('Number of the product; null for the whole cart.'),
  discount_pct_or_price: z
    .int()
    .nullable()
    .describe('Percent for `PERCENT_OFF`, cents for `AMOUNT_OFF` and `FIXED_PRICE`; null for other types.'),
})
const ConstraintFields = z.object({
  type: ConstraintType,
  value: z
    .string()
    .max(50)
    .describe(
      'Value as text, by the type: cents, a number, 1 or 0, weekdays (`1,2,5`) or times (`HH:MM-HH:MM`).',
    ),
})

/** O §2. `start` and `end` are inclusive days of the hub; null is open. */
export const Deal = z
  .object({
    id: Id.describe('Number of the deal.'),
    name: z.string().describe('Name of the deal.'),
    description: z.string().nullable().describe('Description of the deal; null if there is none.'),
    display_text: z
      .string()
      .nullable()
      .describe('Text that the hub and the apps show; null if there is none.'),
    display_image: z
      .string()
      .nullable()
      .describe('Signed address of the banner image, which expires; null if there is none.'),
    priority: z
      .int()
      .describe('Priority: among deals that stack, a higher one is applied first, then the lower number.'),
    is_deal_active: z.boolean().describe('True if the deal is switched on.'),
    start: DealDate.nullable().describe('First day, inclusive, in the hub’s time zone; null if it is open.'),
    end: DealDate.nullable().describe('Last day, inclusive, in the hub’s time zone; null if it is open.'),
    triggers: z
      .array(
        TriggerFields.extend({ id: Id.describe('Number of the trigger.') }).meta({
          id: 'DealTrigger',
          description: 'A condition of a deal.',
        }),
      )
      .describe('Conditions. The deal applies if all of them are met.'),
    rewards: z
      .array(
        RewardFields.extend({ id: Id.describe('Number of the reward.') }).meta({
          id: 'DealReward',
          description: 'A reward of a deal.',
        }),
      )
      .describe('Rewards of the deal.'),
    constraints: z
      .array(
        ConstraintFields.extend({ id: Id.describe('Number of the constraint.') }).meta({
          id: 'DealConstraint',
          description: 'A limit of a deal.',
        }),
      )
      .describe('Limits of the deal.'),
  })
  .meta({ id: 'Deal', description: 'A discount with its conditions, rewards and limits.' })
export type Deal = z.infer<typeof Deal>

/** No price, amount or sum that anybody sends is greater: 100,000.00. */
export const MOST_CENTS = 10_000_000
const MOST_UNITS = 1000

const Amount = z.int().min(0).max(MOST_CENTS)
const Units = z.int().min(1).max(MOST_UNITS)

type Context = z.core.$RefinementCtx

function requireValue(value: unknown, field: string, context: Context): void {
  if (value === null)
    context.addIssue({ code: 'invalid_type', expected: 'int', input: undefined, path: [field] })
}

type Range = readonly [least: number, most: number]

function requireWithin(
  value: number | null,
  [minimum, maximum]: Range,
  field: string,
  context: Context,
): void {
  const issue = { origin: 'int', inclusive: true, input: value, path: [field] }
  if (value !== null && value < minimum) context.addIssue({ code: 'too_small', minimum, ...issue })
  if (value !== null && value > maximum) context.addIssue({ code: 'too_big', maximum, ...issue })
}

/** A deal's trigger in a request: the fields that its type needs are required. */
export const NewTrigger = z
  .object({
    type: TriggerType,
    quantity: z
      .int()
      .min(1)
      .max(MOST_CENTS)
      .nullable()
      .default(null)
      .describe('Units, or cents for `SPEND`. Required for `QUANTITY` and `SPEND`. If it is left out: none.'),
    category: z
      .string()
      .min(1)
      .max(100)
      .nullable()
      .default(null)
      .describe('Name of the category. If it is left out: any.'),
    category_id: Id.nullable()
      .default(null)
      .describe('Number of the category. `CATEGORY` needs it or `category`. If it is left out: any.'),
    product_id: Id.nullable().default(null).describe('Number of the product. If it is left out: any.'),
  })
  .superRefine(({ type, quantity, category, category_id }, context) => {
    if (type === 'QUANTITY' || type === 'SPEND') requireValue(quantity, 'quantity', context)
    if (type !== 'SPEND') requireWithin(quantity, [1, MOST_UNITS], 'quantity', context)
    if (type === 'CATEGORY') requireValue(category_id ?? category, 'category_id', context)
  })
export type NewTrigger = z.output<typeof NewTrigger>

/** The least and the most of `discount_pct_or_price`, by the types that need it. */
const valueRange = {
  PERCENT_OFF: [1, 100],
  AMOUNT_OFF: [1, MOST_CENTS],
  FIXED_PRICE: [0, MOST_CENTS],
} as const

export const NewReward = z
  .object({
    type: RewardType,
    quantity: Units.nullable()
      .default(null)
      .describe('Units that the reward affects. If it is left out: all.'),
    product_id: Id.nullable()
      .default(null)
      .describe('Number of the product. If it is left out: the whole cart.'),
    discount_pct_or_price: Amount.nullable()
      .default(null)
      .describe(
        'Percent (1 to 100) for `PERCENT_OFF`, cents for `AMOUNT_OFF` and `FIXED_PRICE`. If it is left out: none. The other types need no value.',
      ),
  })
  .superRefine(({ type, discount_pct_or_price: value }, context) => {
    if (type === 'FREE_ITEM' || type === 'CHEAPEST_FREE') return
    requireValue(value, 'discount_pct_or_price', context)
    requireWithin(value, valueRange[type], 'discount_pct_or_price', context)
  })
export type NewReward = z.output<typeof NewReward>

export const NewConstraint = ConstraintFields.superRefine((constraint, context) => {
  const problem = constraintProblem(constraint)
  if (problem !== undefined)
    context.addIssue({ code: 'custom', message: problem, input: constraint.value, path: ['value'] })
})
export type NewConstraint = z.output<typeof NewConstraint>

/** Each type of constraint once. */
const constraintsOf = (constraint: typeof NewConstraint) =>
  z
    .array(constraint)
    .max(constraintTypes.length)
    .superRefine((constraints, context) => {
      for (const [index, { type }] of constraints.entries())
        if (constraints.findIndex((other) => other.type === type) < index)
          context.addIssue({
            code: 'custom',
            message: `there is a ${type} already`,
            input: type,
            path: [index, 'type'],
          })
    })

const dealFields = {
  name: nameText(200).describe('Name of the deal.'),
  hub_id: HubId,
  description: z
    .string()
    .max(2000)
    .nullable()
    .default(null)
    .describe('Description of the deal. If it is left out: none.'),
  display_text: z
    .string()
    .max(500)
    .nullable()
    .default(null)
    .describe('Text that the hub and the apps show. If it is left out: none.'),
  priority: z
    .int()
    .min(-1_000_000)
    .max(1_000_000)
    .default(0)
    .describe('Priority: among deals that stack, a higher one is applied first.'),
  is_deal_active: z.boolean().default(true).describe('True if the deal is switched on.'),
  start: DealDate.nullable()
    .default(null)
    .describe('First day, inclusive, in the hub’s time zone (`YYYY-MM-DD`). If it is left out: open.'),
  end: DealDate.nullable()
    .default(null)
    .describe('Last day, inclusive, in the hub’s time zone (`YYYY-MM-DD`). If it is left out: open.'),
}

interface Dates {
  start?: string | null | undefined
  end?: string | null | undefined
}

/** The first day is not after the last. */
function checkDates({ start, end }: Dates, context: Context): void {
  if (start != null && end != null && start > end)
    context.addIssue({ code: 'custom', message: 'the end is before the start', input: end, path: ['end'] })
}

/**
 * Body of `POST DEALS/` (O §4.7). In addition to the document's fields it accepts the resource's other writable fields:
 * `display_text`, `priority` (default 0), `is_deal_active` (default true).
 */
export const NewDeal = z
  .strictObject({
    ...dealFields,
    triggers: z
      .array(NewTrigger.strict())
      .min(1)
      .max(10)
      .describe('Conditions. The deal applies if all of them are met.'),
    rewards: z.array(NewReward.strict()).min(1).max(10).describe('Rewards of the deal.'),
    constraints: constraintsOf(NewConstraint.strict())
      .default([])
      .describe('Limits of the deal, each type once. If it is left out: no limits.'),
  })
  .superRefine(checkDates)
export type NewDeal = z.output<typeof NewDeal>

/** The `dealData` of create-from-owner (O §4.7): one trigger and one reward. Unknown fields are ignored. */
export const OwnerDealData = z.object({
  deal: z.object(dealFields).superRefine(checkDates).describe('Fields of the deal.'),
  trigger: NewTrigger.describe('Condition of the deal.'),
  reward: NewReward.describe('Reward of the deal.'),
  constraints: constraintsOf(NewConstraint)
    .default([])
    .describe('Limits of the deal, each type once. If it is left out: no limits.'),
})

export const DealUpdate = z
  .strictObject({
    name: dealFields.name.optional().describe('Name of the deal. If it is left out: unchanged.'),
    is_deal_active: z
      .boolean()
      .optional()
      .describe('True if the deal is switched on. If it is left out: unchanged.'),
    start: DealDate.nullable()
      .optional()
      .describe('First day, inclusive (`YYYY-MM-DD`); null opens it. If it is left out: unchanged.'),
    end: DealDate.nullable()
      .optional()
      .describe('Last day, inclusive (`YYYY-MM-DD`); null opens it. If it is left out: unchanged.'),
  })
  .superRefine(checkDates)

/**
 * A line of a cart with the caller's own prices. Unknown fields are ignored, because callers send lines of their own
 * carts.
 */
export const CartItem = z
  .object({
    product_id: ProductId,
    category_id: Id.nullable().default(null).describe('Number of the category. If it is left out: none.'),
    subcategory_id: Id.nullable()
      .default(null)
      .describe('Number of the subcategory. If it is left out: none.'),
    quantity: Units.describe('Units in the cart.'),
    unit_price: Amount.describe('Price of one unit in cents, as the caller sells it.'),
  })
  .meta({ id: 'CartItem', description: 'A line of a cart with the caller’s price.' })
export const CartItems = z.array(CartItem).max(100)

export const EligibleDeal = z
  .object({
    deal_id: Id.describe('Number of the deal.'),
    deal_name: z.string().describe('Name of the deal.'),
    description: z.string().nullable().describe('Description of the deal; null if there is none.'),
    display_text: z
      .string()
      .nullable()
      .describe('Text that the hub and the apps show; null if there is none.'),
    reward_description: z.string().describe('Reward as a sentence.'),
    potential_savings: Cents.describe(
      'Saving of this deal alone on this cart, in cents; 0 if the cart lacks the product that becomes cheaper.',
    ),
    start: DealDate.nullable().describe('First day, inclusive; null if it is open.'),
    end: DealDate.nullable().describe('Last day, inclusive; null if it is open.'),
    stackable: z.boolean().describe('True if the deal can be combined with others.'),
  })
  .meta({ id: 'EligibleDeal', description: 'A deal that a cart qualifies for.' })

export const RewardResult = z
  .object({
    success: Success,
    deal_applied: z.boolean().describe('True if at least one deal was applied.'),
    modified_cart_items: z
      .array(
        z
          .object({
            product_id: ProductId,
            category_id: Id.nullable().describe('Number of the category; null if none was sent.'),
            quantity: z.int().describe('Units in the cart.'),
            original_unit_price: Cents.describe('Price of one unit before the deals, in cents.'),
            discounted_unit_price: Cents.describe(
              'Price of one discounted unit, in cents, rounded half up. `discount_applied` is authoritative.',
            ),
            discount_applied: Cents.describe('Discount of the line, in cents.'),
            quantity_discounted: z.int().describe('Units with a discount.'),
          })
          .meta({ id: 'DiscountedCartItem', description: 'A line of a cart after deals were applied.' }),
      )
      .describe('Lines of the cart after the deals.'),
    original_cart_total: Cents.describe('Total of the cart before the deals, in cents.'),
    discounted_cart_total: Cents.describe('Total of the cart after the deals, in cents.'),
    total_savings: Cents.describe('Sum of all `discount_applied`, in cents.'),
    message: z.string().describe('Result as a sentence: the applied deals, or the reason why none applies.'),
  })
  .meta({ id: 'RewardResult', description: 'A cart after deals were applied.' })
export type RewardResult = z.infer<typeof RewardResult>
