import { z } from 'zod'
import {
  Id,
  Cents,
  HubId,
  UserId,
  OrderId,
  CreatedAt,
  Currency,
  ImageUrl,
  Upc,
  Success,
  Limit,
  NumberCursor,
  NextNumberCursor,
  HasMore,
  ProcessingStatus,
  PaymentStatus,
  ReportRange,
} from './fields.ts'
import { namedEnum } from '../model/named-enum.ts'
import { StatusFilter } from './consumer-orders.ts'
import { defineRoutes } from './route.ts'

/** O §2, order and order item. The prices of a cart are not frozen: its totals are the current ones. */
export const OwnerOrder = z
  .object({
    id: OrderId,
    user_id: UserId,
    total_price_original: Cents.describe(
      'Sum of the lines before markdowns and deals, without tax, in cents.',
    ),
    total_price_discounted: Cents.describe(
      'Sum of the lines after markdowns and deals, without tax, in cents.',
    ),
    payment_status: PaymentStatus,
    processing_status: ProcessingStatus,
    created_at: CreatedAt,
    order_items: z
      .array(
        z
          .object({
            productUPC: Upc,
            name: z.string().describe('Name of the product.'),
            qty: z.int().describe('Ordered units.'),
            dropped: z.boolean().describe('True if every unit of the line was dispensed.'),
            qty_dropped: z.int().describe('Dispensed units.'),
            refunded_quantity: z.int().describe('Refunded units.'),
            price: Cents.describe('Price of one unit after the product’s own markdown, in cents.'),
            image_url: ImageUrl,
          })
          .meta({ id: 'OwnerOrderItem', description: 'A line of an order as its owner sees it.' }),
      )
      .describe('Lines of the order.'),
  })
  .meta({ id: 'OwnerOrder', description: 'An order as its owner sees it.' })
export type OwnerOrder = z.infer<typeof OwnerOrder>

const EvidenceKind = namedEnum('OrderEvidenceKind', 'What the evidence is about.', {
  paid: 'money of the customer.',
  dispensed: 'units that the hub dispensed.',
  sensor: 'what the drop sensor saw, or how an unknown outcome was resolved.',
  door: 'doors of bins.',
  refunded: 'money that was refunded.',
})

const RefundId = Id.describe('Number of a failed refund.')

/** Everything that proves what became of an order. */
const OrderEvidence = OwnerOrder.extend({
  hub_id: HubId,
  currency: Currency,
  tax_total: Cents.describe('Tax of the order at its sale, in cents.'),
  total: Cents.describe('Total of the order at its sale, tax included, in cents.'),
  bins: z.array(z.int()).describe('Numbers of the bins with the goods of the order; empty before READY.'),
  paid: Cents.describe('Money that the customer paid, in cents.'),
  refunded: Cents.describe('Money that was refunded, tax included, in cents.'),
  owed: Cents.describe('Money for units that were neither dispensed nor refunded yet, in cents.'),
  failed_refunds: z
    .array(
      z
        .object({
          refund_id: RefundId,
          amount: Cents.describe('Money of the refund that the customer is still owed, in cents.'),
          failure_reason: z.string().nullable().describe('Reason of the processor; null if it gave none.'),
        })
        .meta({ id: 'FailedRefund', description: 'A refund that failed and that nothing has replaced.' }),
    )
    .describe('Refunds that failed and are still owed, oldest first.'),
  summary: z.string().describe('The evidence as a sentence for people.'),
  evidence: z
    .array(
      z
        .object({
          at: CreatedAt.describe('Time of the evidence (UTC).'),
          kind: EvidenceKind,
          text: z.string().describe('The evidence as a sentence for people.'),
        })
        .meta({ id: 'OrderEvidenceEntry', description: 'One piece of evidence of an order.' }),
    )
    .describe('Evidence, oldest first.'),
}).meta({ id: 'OrderEvidence', description: 'An order with the evidence of its money, units and doors.' })
export type OrderEvidence = z.infer<typeof OrderEvidence>

const destination = {
  destination: z
    .literal('Bank Account')
    .optional()
    .describe('Always `Bank Account`: the original payment method. If it is left out: the same.'),
  refund_destination: z
    .literal('Bank Account')
    .optional()
    .describe(
      'Older name of `destination`. If both are sent and differ, the answer is 422 `invalid_destination`. If it is left out: no effect.',
    ),
}

/** O §4.3. */
export const ownerOrderRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'orders:write' },
    rate: 'standard',
    tag: 'Order history',
  },
  {
    'owner.orders.list': {
      at: 'GET /owners/hubs/all_orders_paginated/',
      auth: { kind: 'api', scope: 'orders:read' },
      query: z.object({
        hub_id: HubId,
        limit: Limit,
        cursor: NumberCursor,
        search: z
          .string()
          .max(200)
          .nullable()
          .default(null)
          .describe(
            'Exact order number, part of an item’s name, or the beginning of a UPC. If it is left out: all orders.',
          ),
        ...ReportRange,
        status: z
          .array(StatusFilter)
          .max(50)
          .optional()
          .describe(
            'Only orders in these states, as numbers or names. Repeat the parameter for several. If it is left out: orders in any state.',
          ),
      }),
      hub: 'hub_id',
      formerOwners: true,
      response: z.object({
        data: z.array(OwnerOrder).describe('Orders, newest first.'),
        next_cursor: NextNumberCursor,
        has_more: HasMore,
      }),
      alsoProduces: 'text/csv',
      badValues: { 'query.cursor': 'invalid_cursor' },
      summary: 'List a hub’s orders, newest first',
      description:
        'New orders do not shift the pages: the cursor is the last order of the page before. A cursor that is no order of the hub is 400 `invalid_cursor`. `from` and `to` bound `created_at`. `Accept: text/csv` returns all matching orders as a table.',
    },
    'owner.orders.get': {
      at: 'GET /owners/orders/{order_id}',
      auth: { kind: 'api', scope: 'orders:read' },
      params: z.object({ order_id: OrderId }),
      response: OrderEvidence,
      errors: ['order_not_found'],
      summary: 'Read an order with the evidence of its money, units and doors',
      description:
        'For a question of a customer: what was paid, what the hub dispensed, what the drop sensor saw, when a bin was opened, and what was refunded. `owed` is 0 when every paid unit was dispensed or refunded.',
    },
    'owner.orders.refund': {
      at: 'POST /owners/orders/{order_id}/refund',
      params: z.object({ order_id: OrderId }),
      body: z.strictObject({
        ...destination,
        amount: z
          .int()
          .min(1)
          .optional()
          .describe(
            'Amount in cents, tax included, from 1 to the rest that can be refunded. If it is left out: the whole rest.',
          ),
      }),
      bodyOptional: true,
      response: z.object({
        success: Success,
        order_id: OrderId,
        new_status: PaymentStatus.describe(
          'Payment status of the order after the refund; `completed` while the processor is still executing it.',
        ),
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
      summary: 'Refund an order in whole or in part to its original payment method',
      description:
        'Card payments are refunded by the processor, wallet payments to the wallet. A refund of an external payment is booked only: the integrator pays it back. A refund of a QUEUED order in whole cancels it. A repeated call without `Idempotency-Key` refunds again while a rest is left.',
      examples: {
        body: { destination: 'Bank Account', amount: 250 },
        response: { success: true, order_id: 17, new_status: 'partially_refunded' },
      },
    },
    'owner.orders.refund_item': {
      at: 'POST /owners/orders/{order_id}/items/{product_id}/refund',
      params: z.object({
        order_id: OrderId,
        product_id: Id.describe('Number of a product of the order, else a UPC.'),
      }),
      body: z.strictObject({
        ...destination,
        quantity: z.int().min(1).default(1).describe('Units to refund.'),
      }),
      bodyOptional: true,
      response: z.object({
        success: Success,
        new_status: PaymentStatus.describe(
          'Payment status of the order after the refund; `completed` while the processor is still executing it.',
        ),
        refunded_amount: Cents.describe('Refunded amount in cents, tax included.'),
        updated_tax: Cents.describe('Tax of the order that remains, in cents.'),
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
      summary: 'Refund units of one product of an order',
      description:
        'The amount is the frozen share of these units, deals and tax included; a refund never prorates discounts again. More units than were bought, or than are left to refund, are 422 `insufficient_quantity`.',
      examples: {
        body: { destination: 'Bank Account', quantity: 1 },
        response: { success: true, new_status: 'partially_refunded', refunded_amount: 271, updated_tax: 35 },
      },
    },
    'owner.orders.settle_refunds': {
      at: 'POST /owners/orders/{order_id}/refunds/settle',
      params: z.object({ order_id: OrderId }),
      body: z.strictObject({
        refund_ids: z
          .array(RefundId)
          .min(1)
          .max(100)
          .describe('Numbers of the failed refunds that were paid: `refund_id` of the order.'),
        amount: z.int().min(1).describe('Money that the customer got for all of them, in cents.'),
        reason: z.string().trim().min(1).max(200).describe('How the customer is paid, for the audit log.'),
      }),
      response: z.object({
        success: Success,
        order_id: OrderId,
        new_status: PaymentStatus.describe('Payment status of the order after the settlement.'),
        settled_ids: z.array(RefundId).describe('Numbers of the settled refunds.'),
        amount: Cents.describe('Money that is booked as refunded, in cents.'),
        currency: Currency,
      }),
      errors: ['order_not_found', 'order_state_conflict'],
      badValues: { 'body.amount': 'invalid_amount' },
      idempotent: true,
      summary: 'Record that failed refunds were paid to the customer in another way',
      description:
        'For cash or a bank transfer, after the processor has rejected a refund. Call this first, then pay: until then the service may repeat the refund. The amount counts as refunded, and the service does not ask the processor for it again. The alarm `refund_failed` ends with the last failed refund. A refund that is not owed is 409 `order_state_conflict`: it is under way, was repeated, was settled or belongs to another order. `details.owed_ids` has the owed refunds. The answer is the same error, without details, while the service asks the processor what it has refunded: repeat the call with another idempotency key. If another amount is owed, the answer is 422 `invalid_amount` with `details.owed`. Nothing is booked then.',
      examples: {
        body: { refund_ids: [31], amount: 271, reason: 'Cash at the hub' },
        response: {
          success: true,
          order_id: 17,
          new_status: 'partially_refunded',
          settled_ids: [31],
          amount: 271,
          currency: 'USD',
        },
      },
    },
  },
)
