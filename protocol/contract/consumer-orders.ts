import { z } from 'zod'
import { errorCodeNames } from '../model/error-codes.ts'
import { OrderStatus, type OrderStatusName } from '../model/order-status.ts'
import {
  BinNumber,
  Cents,
  Id,
  PaymentStatus,
  ProcessingStatus,
  ProcessingStatusName,
  Timestamp,
} from './fields.ts'
import { defineRoutes } from './route.ts'

/** What the contract marks with `?` is always present here, and null where there is nothing to say. */
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

const orderParams = z.object({ user_id: Id, order_id: Id })
const hubQuery = z.object({ hub_id: Id })

/** A product of the earlier order: `available` of the `requested` units are in the cart. */
const UnavailableItem = z.object({
  /** Of the hub of the earlier order, as are `upc` and `name`. */
  product_id: Id,
  upc: z.string(),
  name: z.string(),
  requested: z.int(),
  available: z.int(),
})

/** `order_by` of the list. */
const OrderSort = z.enum(['created_at', 'updated_at', 'total', 'processing_status', 'order_id'])
export type OrderSort = z.infer<typeof OrderSort>

const statusNames = Object.keys(OrderStatus) as OrderStatusName[]

/** A status by its number or its name. */
const StatusFilter = z.literal([...Object.values(OrderStatus), ...statusNames])

/** C §4.2. */
export const consumerOrderRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Orders' },
  {
    'consumer.orders.create': {
      at: 'POST /users/{user_id}/orders',
      params: z.object({ user_id: Id }),
      query: hubQuery,
      response: Order,
      errors: ['hub_not_found', 'hub_not_accepting_orders'],
      idempotent: true,
      summary: 'Create an order at a hub, or return the active one there',
    },
    'consumer.orders.list': {
      at: 'GET /users/{user_id}/orders',
      params: z.object({ user_id: Id }),
      query: z.object({
        /** Repeated; of any status where absent. */
        order_processing_statuses: z.array(StatusFilter).max(50).optional(),
        order_by: OrderSort.default('created_at'),
        is_desc: z.boolean().default(false),
        page: z.int().min(1).default(1),
        size: z.int().min(1).max(100).default(50),
      }),
      response: z.object({
        items: z.array(Order),
        total: z.int(),
        page: z.int(),
        size: z.int(),
        pages: z.int(),
      }),
      summary: "A page of the user's orders, at whatever hub",
      description: 'A cart has no total of its own yet: it stands first where the totals put in order.',
    },
    'consumer.orders.count_items': {
      at: 'GET /users/{user_id}/orders/order-items/count',
      params: z.object({ user_id: Id }),
      query: hubQuery,
      response: z.object({
        /** Units, of whatever products. */
        count: z.int(),
        /** Null, and the count 0, where there is no active order at the hub. */
        order_id: Id.nullable(),
      }),
      errors: ['hub_not_found'],
      summary: 'How many units the active order at a hub has',
    },
    'consumer.orders.get': {
      at: 'GET /users/{user_id}/orders/{order_id}',
      params: orderParams,
      query: hubQuery,
      response: Order,
      errors: ['order_not_found'],
      summary: 'Read an order',
    },
    'consumer.orders.delete': {
      at: 'DELETE /users/{user_id}/orders/{order_id}',
      params: orderParams,
      response: z.object({ success: z.boolean(), order_id: Id, message: z.string() }),
      errors: ['order_not_found', 'order_not_deletable', 'order_state_conflict', 'processor_unavailable'],
      summary: 'Delete an unpaid order, or cancel and refund one that the hub has not started',
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
        product_id: Id,
        /** Absolute; 0 removes the item. More than there are, and more than 1,000 of one product, are `insufficient_stock`. */
        quantity: z.int().min(0).max(1_000_000_000),
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
      at: 'GET /users/{user_id}/orders/{order_id}/checkout-available',
      params: orderParams,
      query: hubQuery,
      response: z.object({
        available: z.boolean(),
        /** Error codes that paying would answer with. */
        reasons: z.array(z.enum(errorCodeNames)),
        total: Cents,
      }),
      errors: ['order_not_found'],
      summary: 'Whether an order can be paid now',
      description:
        '`reasons` has everything that stands in the way. `amount_too_small`: the total is less than a card can pay; the wallet or an integrator may take it all the same.',
    },
    'consumer.orders.reorder': {
      at: 'POST /users/{user_id}/orders/{source_order_id}/reorder',
      params: z.object({ user_id: Id, source_order_id: Id }),
      query: z.object({ target_hub_id: Id }),
      response: Order.extend({ unavailable_items: z.array(UnavailableItem) }).meta({ id: 'Reorder' }),
      errors: ['order_not_found', 'hub_not_found', 'hub_not_accepting_orders', 'order_not_editable'],
      idempotent: true,
      summary: "Put an earlier order's items into the cart at a hub",
      description:
        'Items are added to the existing cart as far as there is stock. `unavailable_items` lists the products with less stock than requested, by the ids, UPCs and names of the source hub. At another hub a product is the one with the same UPC.',
    },
    'consumer.orders.transfer': {
      at: 'POST /users/user/transfer-anon-order',
      body: z.strictObject({
        anonymous_user_id: Id,
        order_id: Id,
        /** An identity token of the guest. */
        anonymous_token: z.string().min(1).max(16_384),
      }),
      response: z.object({
        order: Order,
        /** Its items were put into the order that the user had already. */
        merged: z.boolean(),
        source_order_id: Id,
      }),
      errors: ['forbidden', 'order_not_found', 'order_already_paid', 'order_not_editable'],
      idempotent: true,
      summary: "Make a guest's unpaid order the user's",
      description:
        'Where the user has a cart with items at the same hub, quantities are added up as far as there is stock, and the cart is returned. The guest’s token proves the guest: `forbidden` with that of anybody else.',
      examples: { body: { anonymous_user_id: 7, order_id: 12, anonymous_token: 'eyJhbGciOiJFUzI1NiJ9…' } },
    },
    'consumer.orders.queue_position': {
      at: 'GET /users/{user_id}/orders/{order_id}/queue-position',
      params: orderParams,
      query: hubQuery,
      response: z.object({
        order_id: Id,
        /** 1 is next; null for an order that does not wait. */
        position: z.int().nullable(),
        ahead: z.int(),
        /**
         * Until it can be taken, from how long the hub takes for a unit; null for an order that is not under way there, and
         * where nobody can know: it waits for a bin that somebody has to empty first, or the hub is silent.
         */
        estimated_wait_seconds: z.int().nullable(),
        processing_status: ProcessingStatus,
      }),
      errors: ['order_not_found'],
      summary: "An order's place in the hub's queue",
    },
    'consumer.orders.open_delivery': {
      at: 'POST /users/{user_id}/orders/{order_id}/open-delivery',
      params: orderParams,
      query: z.object({
        hub_id: Id,
        /** Bin numbers, separated by commas. One that no hub has is a bin of no order. */
        bin_nums: z
          .string()
          .max(100)
          .regex(/^ *\d{1,4} *(, *\d{1,4} *)*$/, 'must be numbers of bins, separated by commas')
          .optional(),
        bin_num: z.int().min(0).max(9999).optional(),
      }),
      response: z.object({
        success: z.boolean(),
        order_id: Id,
        results: z.array(
          z.object({ bin_number: BinNumber, success: z.boolean(), error: z.string().nullable() }),
        ),
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
      summary: 'Open the bins of a ready order: those named, or all',
    },
  },
)
