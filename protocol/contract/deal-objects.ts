import { z } from 'zod'
import { constraintProblem, constraintTypes, rewardTypes, triggerTypes } from '../model/deal-terms.ts'
import { Cents, Id } from './fields.ts'

/** The calendar day of a hub. */
export const DealDate = z.iso.date()

const TriggerFields = z.object({
  type: z.enum(triggerTypes),
  /** Units; of `SPEND` cents. */
  quantity: z.int().nullable(),
  category: z.string().nullable(),
  category_id: Id.nullable(),
  product_id: Id.nullable(),
})
const RewardFields = z.object({
  type: z.enum(rewardTypes),
  /** Units affected; null: all. */
  quantity: z.int().nullable(),
  /** Null: the whole cart. */
  product_id: Id.nullable(),
  /** Percent of `PERCENT_OFF`, cents of `AMOUNT_OFF` and `FIXED_PRICE`. */
  discount_pct_or_price: z.int().nullable(),
})
const ConstraintFields = z.object({ type: z.enum(constraintTypes), value: z.string().max(50) })

/** O §2. `start` and `end` are inclusive days of the hub; null is open. */
export const Deal = z
  .object({
    id: Id,
    name: z.string(),
    description: z.string().nullable(),
    display_text: z.string().nullable(),
    display_image: z.string().nullable(),
    priority: z.int(),
    is_deal_active: z.boolean(),
    start: DealDate.nullable(),
    end: DealDate.nullable(),
    triggers: z.array(TriggerFields.extend({ id: Id })),
    rewards: z.array(RewardFields.extend({ id: Id })),
    constraints: z.array(ConstraintFields.extend({ id: Id })),
  })
  .meta({ id: 'Deal' })
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

/** A deal's trigger as it is sent: what its type needs must be there. */
export const NewTrigger = z
  .object({
    type: z.enum(triggerTypes),
    quantity: z.int().min(1).max(MOST_CENTS).nullable().default(null),
    category: z.string().min(1).max(100).nullable().default(null),
    category_id: Id.nullable().default(null),
    product_id: Id.nullable().default(null),
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
    type: z.enum(rewardTypes),
    quantity: Units.nullable().default(null),
    product_id: Id.nullable().default(null),
    discount_pct_or_price: Amount.nullable().default(null),
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
  name: z.string().trim().min(1).max(200),
  hub_id: Id,
  description: z.string().max(2000).nullable().default(null),
  display_text: z.string().max(500).nullable().default(null),
  priority: z.int().min(-1_000_000).max(1_000_000).default(0),
  is_deal_active: z.boolean().default(true),
  start: DealDate.nullable().default(null),
  end: DealDate.nullable().default(null),
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
 * Body of `POST DEALS/` (O §4.7). Beyond what the document lists it takes the resource's other fields that can be written:
 * `display_text`, `priority` (default 0), `is_deal_active` (default true).
 */
export const NewDeal = z
  .strictObject({
    ...dealFields,
    triggers: z.array(NewTrigger.strict()).min(1).max(10),
    rewards: z.array(NewReward.strict()).min(1).max(10),
    constraints: constraintsOf(NewConstraint.strict()).default([]),
  })
  .superRefine(checkDates)
export type NewDeal = z.output<typeof NewDeal>

/** The `dealData` of create-from-owner (O §4.7): one trigger and one reward. Unknown fields are ignored. */
export const OwnerDealData = z.object({
  deal: z.object(dealFields).superRefine(checkDates),
  trigger: NewTrigger,
  reward: NewReward,
  constraints: constraintsOf(NewConstraint).default([]),
})

export const DealUpdate = z
  .strictObject({
    name: dealFields.name.optional(),
    is_deal_active: z.boolean().optional(),
    start: DealDate.nullable().optional(),
    end: DealDate.nullable().optional(),
  })
  .superRefine(checkDates)

/** A line of a cart whose prices are the caller's. Unknown fields are ignored: callers send lines of their own carts. */
export const CartItem = z.object({
  product_id: Id,
  category_id: Id.nullable().default(null),
  subcategory_id: Id.nullable().default(null),
  quantity: Units,
  unit_price: Amount,
})
export const CartItems = z.array(CartItem).max(100)

export const EligibleDeal = z.object({
  deal_id: Id,
  deal_name: z.string(),
  description: z.string().nullable(),
  display_text: z.string().nullable(),
  reward_description: z.string(),
  /** What the deal would save on this cart by itself. */
  potential_savings: Cents,
  start: DealDate.nullable(),
  end: DealDate.nullable(),
  stackable: z.boolean(),
})

export const RewardResult = z
  .object({
    success: z.boolean(),
    deal_applied: z.boolean(),
    modified_cart_items: z.array(
      z.object({
        product_id: Id,
        category_id: Id.nullable(),
        quantity: z.int(),
        original_unit_price: Cents,
        /** Of the discounted units, rounded half up: `discount_applied` is what counts. */
        discounted_unit_price: Cents,
        discount_applied: Cents,
        quantity_discounted: z.int(),
      }),
    ),
    original_cart_total: Cents,
    discounted_cart_total: Cents,
    /** The sum of every `discount_applied`. */
    total_savings: Cents,
    message: z.string(),
  })
  .meta({ id: 'RewardResult' })
export type RewardResult = z.infer<typeof RewardResult>
