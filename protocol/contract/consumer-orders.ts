import { z } from 'zod'
import { OrderStatus, type OrderStatusName } from '../model/order-status.ts'
import { namedEnum } from '../model/named-enum.ts'
import {
  Id,
  Cents,
  Timestamp,
  HubId,
  UserId,
  OrderId,
  ProductId,
  Currency,
  CreatedAt,
  UpdatedAt,
  ImageUrl,
  Upc,
  Success,
  Message,
  Page,
  Total,
  ProcessingStatus,
  ProcessingStatusName,
  PaymentStatus,
  BinNumber,
} from './fields.ts'
import { ErrorCodeName } from './errors.ts'
import { Receipt } from './receipt.ts'
import { defineRoutes } from './route.ts'

/** Fields that the contract marks with `?` are always present here; null if there is no value. */
export const OrderItem = z
  .object({
    order_item_id: Id.describe('Number of this line of the order.'),
    product_id: ProductId,
    productUPC: Upc,
    name: z.string().describe('Name of the product.'),
    qty: z.int().describe('Ordered units.'),
    unit_price_original: Cents.describe('Price of one unit before the product’s own markdown, in cents.'),
    price: Cents.describe('Price of one unit after the product’s own markdown, in cents.'),
    line_total: Cents.describe('Total of the line after deals and without tax, in cents.'),
    dropped: z.boolean().describe('True if every unit of the line was dispensed.'),
    qty_dropped: z.int().describe('Dispensed units.'),
    refunded_quantity: z.int().describe('Refunded units.'),
    bin_number: BinNumber.nullable().describe(
      'Number of the bin with the goods; null before the hub chose one.',
    ),
    image_url: ImageUrl,
  })
  .meta({ id: 'OrderItem', description: 'A line of an order.' })
export type OrderItem = z.infer<typeof OrderItem>

/** The prices of a cart are not frozen: its totals are the current ones. */
export const Order = z
  .object({
    order_id: OrderId,
    user_id: UserId,
    hub_id: HubId,
    processing_status: ProcessingStatus,
    processing_status_name: ProcessingStatusName,
    payment_status: PaymentStatus,
    items: z.array(OrderItem).describe('Lines of the order.'),
    total_price_original: Cents.describe(
      'Sum of the lines before markdowns and deals, without tax, in cents.',
    ),
    total_price_discounted: Cents.describe(
      'Sum of the lines after markdowns and deals, without tax, in cents.',
    ),
    discount_total: Cents.describe('Markdowns and deals together, in cents.'),
    tax_total: Cents.describe('Tax in cents.'),
    total: Cents.describe(
      'Amount to pay, tax included, in cents. The prices of a cart are not frozen: its totals are the current ones.',
    ),
    currency: Currency,
    deals: z
      .array(
        z
          .object({
            deal_id: Id.describe('Number of the deal.'),
            name: z.string().describe('Name of the deal.'),
            savings: Cents.describe('Saving by this deal, in cents.'),
          })
          .meta({ id: 'OrderDeal', description: 'A deal that is applied to an order.' }),
      )
      .describe('Deals that are applied to the order. Their savings are already subtracted from the totals.'),
    bins: z.array(BinNumber).describe('Numbers of the bins that hold the order or are reserved for it.'),
    queue_position: z
      .int()
      .nullable()
      .describe('Place in the hub’s queue, 1 is next; null if the order does not wait.'),
    expires_at: Timestamp.nullable().describe(
      'Time at which the idle order expires (UTC); null if it is paid or has ended.',
    ),
    ready_at: Timestamp.nullable().describe('Time at which the order became READY (UTC); null before.'),
    version: z.int().describe('Version of the order. It grows with each change.'),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  })
  .meta({ id: 'Order', description: 'An order as its customer sees it.' })
export type Order = z.infer<typeof Order>

const orderParams = z.object({ user_id: UserId, order_id: OrderId })
const hubQuery = z.object({ hub_id: HubId })

/** A product of the earlier order: `available` of the `requested` units are in the cart. */
const UnavailableItem = z
  .object({
    product_id: Id.describe('Number of the product at the hub of the earlier order.'),
    upc: Upc,
    name: z.string().describe('Name of the product.'),
    requested: z.int().describe('Units that were requested.'),
    available: z.int().describe('Units that are in the cart.'),
  })
  .meta({
    id: 'UnavailableItem',
    description: 'A product of the earlier order that is not available in the requested quantity.',
  })

/** `order_by` of the list. */
const OrderSort = namedEnum('OrderSort', 'Field that orders are sorted by.', {
  created_at: 'time of creation.',
  updated_at: 'time of the last change.',
  total: 'total in cents.',
  processing_status: 'state.',
  order_id: 'number.',
})
export type OrderSort = z.infer<typeof OrderSort>

const statusNames = Object.keys(OrderStatus) as OrderStatusName[]

/** A status by its number or its name. */
export const StatusFilter = z.literal([...Object.values(OrderStatus), ...statusNames]).meta({
  description: 'State of an order as a number or a name.',
  anyOf: ['ProcessingStatus', 'ProcessingStatusName'].map((name) => ({
    $ref: `#/components/schemas/${name}`,
  })),
})

/** C §4.2. */
export const consumerOrderRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Orders' },
  {
    'consumer.orders.create': {
      at: 'POST /users/{user_id}/orders',
      params: z.object({ user_id: UserId }),
      query: hubQuery,
      response: Order,
      errors: ['hub_not_found', 'hub_not_accepting_orders'],
      idempotent: true,
      summary: 'Create an order at a hub, or return the active one there',
      description:
        'Returns the active order of the customer at this hub if there is one, else a new cart (NEW).',
    },
    'consumer.orders.list': {
      at: 'GET /users/{user_id}/orders',
      params: z.object({ user_id: UserId }),
      query: z.object({
        order_processing_statuses: z
          .array(StatusFilter)
          .max(50)
          .optional()
          .describe(
            'Only orders in these states, as numbers or names. Repeat the parameter for several. If it is left out: orders in any state.',
          ),
        order_by: OrderSort.default('created_at').describe('Field that the orders are sorted by.'),
        is_desc: z.boolean().default(false).describe('True sorts from high to low.'),
        page: Page,
        size: z.int().min(1).max(100).default(50).describe('Maximum number of orders of the page.'),
      }),
      response: z.object({
        items: z.array(Order).describe('Orders of this page.'),
        total: Total,
        page: z.int().describe('Number of this page.'),
        size: z.int().describe('Maximum number of orders of a page.'),
        pages: z.int().describe('Number of pages.'),
      }),
      summary: 'A page of the customer’s orders at all hubs',
      description: 'A cart has no fixed total yet: sorted by `total`, carts come first.',
    },
    'consumer.orders.count_items': {
      at: 'GET /users/{user_id}/orders/order-items/count',
      params: z.object({ user_id: UserId }),
      query: hubQuery,
      response: z.object({
        count: z.int().describe('Number of units of all products; 0 if there is no active order at the hub.'),
        order_id: Id.nullable().describe('Number of the active order; null if there is none at the hub.'),
      }),
      errors: ['hub_not_found'],
      summary: 'Count the units of the active order at a hub',
      description: 'For the badge of a cart symbol: one call without the whole order.',
    },
    'consumer.orders.get': {
      at: 'GET /users/{user_id}/orders/{order_id}',
      params: orderParams,
      query: hubQuery,
      response: Order,
      errors: ['order_not_found'],
      summary: 'Read an order',
      description: 'The order with its lines, totals, deals, bins and place in the queue.',
    },
    'consumer.orders.receipt': {
      at: 'GET /users/{user_id}/orders/{order_id}/receipt',
      params: orderParams,
      response: Receipt,
      alsoProduces: 'text/html',
      errors: ['order_not_found', 'order_state_conflict'],
      summary: 'Read the receipt of a paid order',
      description:
        'Amounts include tax, except `tax_total` and the prices of the lines. `Accept: text/html` returns a page. An unpaid order is 409 `order_state_conflict`.',
    },
    'consumer.orders.delete': {
      at: 'DELETE /users/{user_id}/orders/{order_id}',
      params: orderParams,
      response: z.object({ success: Success, order_id: OrderId, message: Message }),
      errors: ['order_not_found', 'order_not_deletable', 'order_state_conflict', 'processor_unavailable'],
      summary: 'Delete an unpaid order, or cancel and refund an order that the hub has not started',
      description:
        'NEW and PENDING_PAYMENT: the order is deleted and its payment cancelled. QUEUED: the order is CANCELLED and refunded if the hub agrees, is silent (after 10 s) or is offline; the hub never dispenses it afterwards. If the hub had already started it, the answer is 409 `order_state_conflict`. Any other status is 409 `order_not_deletable`.',
    },
    'consumer.orders.events': {
      at: 'GET /users/{user_id}/orders/{order_id}/events',
      params: orderParams,
      response: z.instanceof(ReadableStream<Uint8Array>),
      message: Order,
      produces: 'text/event-stream',
      errors: ['order_not_found'],
      summary: 'Follow an order, as server-sent events',
      description:
        "Each message is the order, with its place in the hub's queue: at once, and at each change. Its id is the order's `version`. A comment every 15 s keeps the connection alive. The stream ends after the order's last state, and after a while in any case: ask again, as browsers do.",
    },
    'consumer.orders.set_item': {
      at: 'PUT /users/{user_id}/orders/{order_id}/order_item',
      params: orderParams,
      query: hubQuery,
      body: z.strictObject({
        product_id: ProductId,
        quantity: z
          .int()
          .min(0)
          .max(1_000_000_000)
          .describe(
            'Units of the product in the cart, an absolute number. 0 removes the line. A number above the stock, or above 1,000, is 409 `insufficient_stock`.',
          ),
        version: z
          .int()
          .min(0)
          .optional()
          .describe(
            '`version` of the order that the caller has seen. If the order has another version, the answer is 409 `order_state_conflict`. If it is left out: no check.',
          ),
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
      description: 'Only a NEW order can be changed. The call can be repeated: the quantity is absolute.',
      examples: { body: { product_id: 1, quantity: 2 } },
    },
    'consumer.orders.checkout_available': {
      at: 'GET /users/{user_id}/orders/{order_id}/checkout-available',
      params: orderParams,
      query: hubQuery,
      response: z.object({
        available: z.boolean().describe('True if the order can be paid now.'),
        reasons: z
          .array(ErrorCodeName)
          .describe('Error codes that paying would return now; empty if the order can be paid.'),
        total: Cents.describe('Amount to pay, tax included, in cents.'),
      }),
      errors: ['order_not_found'],
      summary: 'Check whether an order can be paid now',
      description:
        '`reasons` lists every reason against paying. `amount_too_small` means that the total is less than a card can pay: the wallet or an integrator may still take it.',
    },
    'consumer.orders.reorder': {
      at: 'POST /users/{user_id}/orders/{source_order_id}/reorder',
      params: z.object({
        user_id: UserId,
        source_order_id: Id.describe('Number of the order to repeat.'),
      }),
      query: z.object({ target_hub_id: Id.describe('Number of the hub at which the items are ordered.') }),
      response: Order.extend({
        unavailable_items: z.array(UnavailableItem).describe('Products with less stock than requested.'),
      }).meta({ id: 'Reorder', description: 'A cart after a reorder, with the unavailable products.' }),
      errors: ['order_not_found', 'hub_not_found', 'hub_not_accepting_orders', 'order_not_editable'],
      idempotent: true,
      summary: "Put an earlier order's items into the cart at a hub",
      description:
        'Items are added to the existing cart as far as there is stock. `unavailable_items` lists the products with less stock than requested, by the ids, UPCs and names of the source hub. At another hub a product is the one with the same UPC.',
    },
    'consumer.orders.transfer': {
      at: 'POST /users/user/transfer-anon-order',
      body: z.strictObject({
        anonymous_user_id: Id.describe('Number of the guest who owns the order.'),
        order_id: OrderId,
        anonymous_token: z.string().min(1).max(16_384).describe('Identity token of the guest.'),
      }),
      response: z.object({
        order: Order.describe('Order of the user after the transfer.'),
        merged: z.boolean().describe('True if the items were added to a cart that the user already had.'),
        source_order_id: Id.describe('Number of the order that was transferred.'),
      }),
      errors: ['forbidden', 'order_not_found', 'order_already_paid', 'order_not_editable'],
      idempotent: true,
      summary: 'Give a guest’s unpaid order to the user',
      description:
        'If the user has a cart with items at the same hub, the quantities are added up to the stock, and the answer is that cart. `anonymous_token` proves that the caller is the guest: any other token is 403 `forbidden`.',
      examples: { body: { anonymous_user_id: 7, order_id: 12, anonymous_token: 'eyJhbGciOiJFUzI1NiJ9…' } },
    },
    'consumer.orders.queue_position': {
      at: 'GET /users/{user_id}/orders/{order_id}/queue-position',
      params: orderParams,
      query: hubQuery,
      response: z.object({
        order_id: OrderId,
        position: z
          .int()
          .nullable()
          .describe('Place in the queue, 1 is next; null if the order does not wait.'),
        ahead: z.int().describe('Number of orders before this one.'),
        estimated_wait_seconds: z
          .int()
          .nullable()
          .describe(
            'Estimated time until the order is READY, in seconds; null if it is unknown, for example while a bin must be emptied first or the hub is silent.',
          ),
        processing_status: ProcessingStatus,
      }),
      errors: ['order_not_found'],
      summary: 'Read the place of an order in the hub’s queue',
      description: 'The event stream of the order reports the same place without polling.',
    },
    'consumer.orders.open_delivery': {
      at: 'POST /users/{user_id}/orders/{order_id}/open-delivery',
      params: orderParams,
      query: z.object({
        hub_id: HubId,
        bin_nums: z
          .string()
          .max(100)
          .regex(/^ *\d{1,4} *(, *\d{1,4} *)*$/, 'must be numbers of bins, separated by commas')
          .optional()
          .describe(
            'Numbers of bins, separated by commas. If it and `bin_num` are left out: all bins of the order.',
          ),
        bin_num: z
          .int()
          .min(0)
          .max(9999)
          .optional()
          .describe('Number of one more bin. If it and `bin_nums` are left out: all bins of the order.'),
      }),
      response: z.object({
        success: z.boolean().describe('True if every bin opened.'),
        order_id: OrderId,
        results: z
          .array(
            z
              .object({
                bin_number: BinNumber,
                success: z.boolean().describe('True if the bin opened.'),
                error: z.string().nullable().describe('Error code of the bin; null if it opened.'),
              })
              .meta({ id: 'OpenedBin', description: 'Result of opening one bin.' }),
          )
          .describe('Result for each bin.'),
      }),
      errors: [
        'order_not_found',
        'order_not_ready',
        'order_state_conflict',
        'bin_not_in_order',
        'hub_offline',
        'hardware_error',
      ],
      idempotent: true,
      summary: 'Open the bins of a ready order',
      description:
        'Opens the named bins, or all bins of the order. A call while a door opens is a success; a call while it closes is 409 `order_state_conflict`.',
    },
  },
)
