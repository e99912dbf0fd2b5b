import { z } from 'zod'
import {
  BinNumber,
  Cents,
  Id,
  PaymentStatus,
  ProcessingStatus,
  ProcessingStatusName,
  Timestamp,
} from './fields.ts'

/** Contract §9. What the contract marks with `?` is always present here, and null where there is nothing to say. */
export const OrderItem = z
  .object({
    order_item_id: Id,
    product_id: Id,
    productUPC: z.string(),
    name: z.string(),
    qty: z.int(),
    unit_price_original: Cents,
    /** Per unit, after the product's own markdown. */
    price: Cents,
    /** Of the whole line, after deals; without tax. */
    line_total: Cents,
    /** All of the line has dropped. */
    dropped: z.boolean(),
    qty_dropped: z.int(),
    refunded_quantity: z.int(),
    bin_number: BinNumber.nullable(),
    image_url: z.string(),
  })
  .meta({ id: 'OrderItem' })
export type OrderItem = z.infer<typeof OrderItem>

/** Of a cart, whose prices are not frozen, the totals are what paying would freeze now. */
export const Order = z
  .object({
    order_id: Id,
    user_id: Id,
    hub_id: Id,
    processing_status: ProcessingStatus,
    processing_status_name: ProcessingStatusName,
    payment_status: PaymentStatus,
    items: z.array(OrderItem),
    total_price_original: Cents,
    total_price_discounted: Cents,
    /** Markdowns and deals. */
    discount_total: Cents,
    tax_total: Cents,
    total: Cents,
    currency: z.string(),
    /** Applied by themselves; what they save is off the totals. */
    deals: z.array(z.object({ deal_id: Id, name: z.string(), savings: Cents })),
    bins: z.array(BinNumber),
    queue_position: z.int().nullable(),
    expires_at: Timestamp.nullable(),
    ready_at: Timestamp.nullable(),
    version: z.int(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Order' })
export type Order = z.infer<typeof Order>

/** `status` in the words of Stripe's PaymentIntent. */
export const PaymentIntentStatus = z.enum([
  'requires_payment_method',
  'requires_confirmation',
  'requires_action',
  'processing',
  'requires_capture',
  'canceled',
  'succeeded',
])

export const PaymentResult = z
  .object({
    order_id: Id,
    /** The processor's payment intent id, or `pay_<id>` where no processor has one. `confirm-payment` takes it. */
    payment_id: z.string(),
    status: PaymentIntentStatus,
    payment_status: PaymentStatus,
    processing_status: ProcessingStatus,
    amount: Cents,
    client_secret: z.string().nullable(),
    next_action: z
      .discriminatedUnion('type', [
        z.object({ type: z.literal('integrator_confirmation'), hub_id: Id, bin_number: BinNumber }),
        /** The card's issuer wants its holder: complete it in the processor's form, then call `confirm-payment`. */
        z.object({ type: z.literal('authenticate'), payment_intent_id: z.string() }),
      ])
      .nullable(),
    decline_code: z.string().nullable(),
  })
  .meta({ id: 'PaymentResult' })
export type PaymentResult = z.infer<typeof PaymentResult>

/** What a saved way to pay is: a card, or a card in one of the two mobile wallets (C §4.4). */
export const PaymentMethodType = z.enum(['card', 'platform_a', 'platform_b'])
export type PaymentMethodType = z.infer<typeof PaymentMethodType>

/** Contract §9. `brand` in the processor's words (`visa`, `mastercard`, …). */
export const PaymentMethod = z
  .object({
    payment_method_id: z.string(),
    type: PaymentMethodType,
    brand: z.string(),
    last4: z.string(),
    exp_month: z.int(),
    exp_year: z.int(),
    is_default: z.boolean(),
    created_at: Timestamp,
  })
  .meta({ id: 'PaymentMethod' })
export type PaymentMethod = z.infer<typeof PaymentMethod>

/** Contract §9: with it the processor's own form takes a card, which is then saved. `status` in the words of Stripe's SetupIntent. */
export const ClientSecret = z
  .object({
    setup_intent_id: z.string(),
    client_secret: z.string(),
    status: z.enum([
      'requires_payment_method',
      'requires_confirmation',
      'requires_action',
      'processing',
      'canceled',
      'succeeded',
    ]),
  })
  .meta({ id: 'ClientSecret' })
export type ClientSecret = z.infer<typeof ClientSecret>
