import { z } from 'zod'
import { errorCodeNames } from '../model/error-codes.ts'
import { BinNumber, Cents, Id, ProcessingStatus } from './fields.ts'
import { Order } from './order-objects.ts'
import { defineRoutes } from './route.ts'

const orderParams = z.object({ user_id: Id, order_id: Id })
const hubQuery = z.object({ hub_id: Id })
const common = { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Orders' } as const

/** C §4.2, contract §10. */
export const consumerOrderRoutes = defineRoutes({
  'consumer.orders.create': {
    ...common,
    method: 'POST',
    path: '/users/{user_id}/orders',
    params: z.object({ user_id: Id }),
    query: hubQuery,
    response: Order,
    errors: ['hub_not_found', 'hub_not_accepting_orders'],
    idempotent: true,
    summary: 'Create an order at a hub, or return the active one there',
  },
  'consumer.orders.get': {
    ...common,
    method: 'GET',
    path: '/users/{user_id}/orders/{order_id}',
    params: orderParams,
    query: hubQuery,
    response: Order,
    errors: ['order_not_found'],
    summary: 'Read an order',
  },
  'consumer.orders.delete': {
    ...common,
    method: 'DELETE',
    path: '/users/{user_id}/orders/{order_id}',
    params: orderParams,
    response: z.object({ success: z.boolean(), order_id: Id, message: z.string() }),
    errors: ['order_not_found', 'order_not_deletable', 'order_in_progress', 'hub_offline', 'hardware_error'],
    summary: 'Delete an unpaid order; cancel and refund one that the hub has not begun',
  },
  'consumer.orders.set_item': {
    ...common,
    method: 'PUT',
    path: '/users/{user_id}/orders/{order_id}/order_item',
    params: orderParams,
    query: hubQuery,
    body: z.strictObject({
      product_id: Id,
      /** Absolute; 0 removes the item. */
      quantity: z.int().min(0).max(1000),
      /** Where given, the order's `version` that the caller has seen. */
      version: z.int().min(0).optional(),
    }),
    response: Order,
    errors: [
      'order_not_found',
      'product_not_found',
      'insufficient_stock',
      'order_not_editable',
      'order_state_conflict',
    ],
    summary: 'Set the quantity of a product in a cart',
    examples: { body: { product_id: 1, quantity: 2 } },
  },
  'consumer.orders.checkout_available': {
    ...common,
    method: 'GET',
    path: '/users/{user_id}/orders/{order_id}/checkout-available',
    params: orderParams,
    query: hubQuery,
    response: z.object({
      available: z.boolean(),
      /** Error codes that paying would answer with, or `validation_error` for an empty cart. */
      reasons: z.array(z.enum(errorCodeNames)),
      total: Cents,
    }),
    errors: ['order_not_found'],
    summary: 'Whether an order can be paid now',
  },
  'consumer.orders.queue_position': {
    ...common,
    method: 'GET',
    path: '/users/{user_id}/orders/{order_id}/queue-position',
    params: orderParams,
    query: hubQuery,
    response: z.object({
      order_id: Id,
      /** 1 is next; null for an order that does not wait. */
      position: z.int().nullable(),
      ahead: z.int(),
      estimated_wait_seconds: z.int().nullable(),
      processing_status: ProcessingStatus,
    }),
    errors: ['order_not_found'],
    summary: "An order's place in the hub's queue",
  },
  'consumer.orders.open_delivery': {
    ...common,
    method: 'POST',
    path: '/users/{user_id}/orders/{order_id}/open-delivery',
    params: orderParams,
    query: z.object({
      hub_id: Id,
      /** Bin numbers, separated by commas. */
      bin_nums: z
        .string()
        .regex(/^[1-4](,[1-4])*$/)
        .optional(),
      bin_num: BinNumber.optional(),
    }),
    response: z.object({
      success: z.boolean(),
      order_id: Id,
      results: z.array(
        z.object({ bin_number: BinNumber, success: z.boolean(), error: z.string().nullable() }),
      ),
    }),
    errors: ['order_not_found', 'order_not_ready', 'bin_not_in_order', 'hub_offline', 'hardware_error'],
    idempotent: true,
    summary: 'Open the bins of a ready order: those named, or all',
  },
})
