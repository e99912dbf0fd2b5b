import { z } from 'zod'
import { Cents, Id, PaymentStatus, ProcessingStatus, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** O §2, order and order item. Of a cart, whose prices are not frozen, the totals are what they would be now. */
export const OwnerOrder = z
  .object({
    id: Id,
    user_id: Id,
    total_price_original: Cents,
    total_price_discounted: Cents,
    payment_status: PaymentStatus,
    processing_status: ProcessingStatus,
    created_at: Timestamp,
    order_items: z.array(
      z.object({
        productUPC: z.string(),
        name: z.string(),
        qty: z.int(),
        /** All of the line has dropped. */
        dropped: z.boolean(),
        qty_dropped: z.int(),
        refunded_quantity: z.int(),
        /** Per unit, after the product's own markdown. */
        price: Cents,
        image_url: z.string(),
      }),
    ),
  })
  .meta({ id: 'OwnerOrder' })
export type OwnerOrder = z.infer<typeof OwnerOrder>

const destination = {
  /** Means the original payment method. */
  destination: z.literal('Bank Account').optional(),
  /** The older name of `destination`. */
  refund_destination: z.literal('Bank Account').optional(),
}

/** O §4.3. */
export const ownerOrderRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'orders:write' }, rate: 'standard', tag: 'Orders' },
  {
    'owner.orders.list': {
      at: 'GET /owners/hubs/all_orders_paginated/',
      auth: { kind: 'api', scope: 'orders:read' },
      query: z.object({
        hub_id: Id,
        limit: z.int().min(1).max(100).default(20),
        cursor: Id.nullable().default(null),
        search: z.string().max(200).nullable().default(null),
      }),
      hub: 'hub_id',
      response: z.object({
        data: z.array(OwnerOrder),
        next_cursor: Id.nullable(),
        has_more: z.boolean(),
      }),
      badValues: { 'query.cursor': 'invalid_cursor' },
      summary: "A hub's order history, newest first",
      description:
        '`cursor` is the `next_cursor` of the page before. `search` finds an exact order id, a part of an item’s name, or the beginning of a UPC.',
    },
    'owner.orders.refund': {
      at: 'POST /owners/orders/{order_id}/refund',
      params: z.object({ order_id: Id }),
      body: z.strictObject({
        ...destination,
        /** Cents; all that remains where absent. */
        amount: z.int().min(1).optional(),
      }),
      bodyOptional: true,
      response: z.object({
        success: z.boolean(),
        order_id: Id,
        /** The order's payment status: `refunded`, `partially_refunded`; `completed` while the processor is at work on it. */
        new_status: PaymentStatus,
      }),
      errors: [
        'order_not_found',
        'already_refunded',
        'refund_failed',
        'processor_unavailable',
        'order_state_conflict',
      ],
      badValues: {
        'body.amount': 'invalid_amount',
        'body.destination': 'invalid_destination',
        'body.refund_destination': 'invalid_destination',
      },
      idempotent: true,
      summary: 'Refund an order, whole or in part, to its original payment method',
      examples: {
        body: { destination: 'Bank Account', amount: 250 },
        response: { success: true, order_id: 17, new_status: 'partially_refunded' },
      },
    },
    'owner.orders.refund_item': {
      at: 'POST /owners/orders/{order_id}/items/{product_id}/refund',
      params: z.object({
        order_id: Id,
        /** A product id of the order, else a UPC. */
        product_id: Id,
      }),
      body: z.strictObject({
        ...destination,
        /** Units. */
        quantity: z.int().min(1).default(1),
      }),
      bodyOptional: true,
      response: z.object({
        success: z.boolean(),
        new_status: PaymentStatus,
        /** Includes its tax. */
        refunded_amount: Cents,
        /** The order's tax that remains. */
        updated_tax: Cents,
      }),
      errors: [
        'order_not_found',
        'product_not_in_order',
        'insufficient_quantity',
        'refund_failed',
        'processor_unavailable',
        'order_state_conflict',
      ],
      badValues: {
        'body.destination': 'invalid_destination',
        'body.refund_destination': 'invalid_destination',
      },
      idempotent: true,
      summary: 'Refund units of one product of an order, by their frozen share with its tax',
      examples: {
        body: { destination: 'Bank Account', quantity: 1 },
        response: { success: true, new_status: 'partially_refunded', refunded_amount: 271, updated_tax: 35 },
      },
    },
  },
)
