import { PaymentStatus } from '../../../../protocol/contract/fields.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { defineTable, flag, id, instant, int, oneOf, orderedText, real, text } from '../table.ts'

const isActive = `processing_status <= ${OrderStatus.COLLECTING}`

/** Orders, and the dispense times of hubs. */
export const orderTables = {
  orders: defineTable({
    /**
     * The number that people read. A restored database issues numbers again, so other systems must not identify orders
     * by it.
     */
    id,
    /** UUIDv7 that identifies the order to its hub. Each checkout creates another one. */
    uuid: text.unique,
    user_id: int.references('users'),
    hub_id: int.references('hubs').fixed,
    /** The owner of the hub at checkout. These books stay with that owner when the hub is moved. Null in a cart. */
    owner_id: int.references('owners').nullable,
    processing_status: oneOf(Object.values(OrderStatus)),
    /** Only `orders/payment-status.ts` derives it, from payments and refunds (I6). */
    payment_status: oneOf(PaymentStatus.options),
    /** Frozen at checkout, like the totals. In a cart: the currency in which it began. */
    currency: text,
    /** Frozen at checkout. Null in a cart, which uses its products' prices. */
    total_price_original: int.check('>= 0').nullable,
    total_price_discounted: int.check('>= 0').nullable,
    tax_total: int.check('>= 0').nullable,
    total: int.check('>= 0').nullable,
    /** The hub's tax rate at checkout. */
    tax_millipercent: int.check('>= 0').nullable,
    /** `Order.deals` as JSON: discounts that the totals already include. */
    deals: text.nullable,
    version: int,
    /** Reserved by an integrator's claim, else null. */
    reserved_bin: int.nullable,
    open_when_ready: flag,
    /** While the order is unpaid: a keyed digest of the payer's network. */
    payer_network: text.nullable,
    /** JSON array of bin numbers from the hub's report. Before that: the reserved bin. */
    bins: text,
    /** `QueuedOrder` as it was sent to the hub, or null. */
    queued_order: text.nullable,
    failure_reason: text.nullable,
    created_at: instant.fixed,
    updated_at: instant,
    /** The customer's last action on the order while it was unpaid. The idle time starts here. */
    touched_at: instant.default(0),
    queued_at: instant.nullable,
    preparing_at: instant.nullable,
    ready_at: instant.nullable,
    /** When its goods were first handed out. Later events do not change it. */
    collected_at: instant.nullable,
    finished_at: instant.nullable,
    /** When the hub started the order, by the hub's clock. Its later reports are measured from here. */
    hub_began_at: int.nullable,
    /** The cart that took this one's items when a guest became a user. */
    merged_into: int.nullable,
  })
    .index('orders_by_hub', ['hub_id', 'id'])
    // Filters by status and time read each status newest first.
    .index('orders_by_status', ['hub_id', 'owner_id', 'processing_status', 'created_at', 'id'])
    .index('orders_by_user', ['user_id', 'created_at', 'id'])
    .index('orders_expired', ['finished_at'], `processing_status = ${OrderStatus.EXPIRED}`)
    // A queue is short, however many orders its hub has had.
    .index('orders_in_queue', ['hub_id', 'queued_at'], isActive)
    .index('orders_under_way', ['processing_status', 'updated_at'], isActive)
    // One active order per user and hub, and one claim per bin.
    .uniqueIndex('orders_one_active', ['user_id', 'hub_id'], isActive)
    .uniqueIndex('orders_one_claim', ['hub_id', 'reserved_bin'], `reserved_bin is not null and ${isActive}`),
  /** Names that a hub's orders have frozen, one row per name and UPC (`orders/sold-names.ts`). */
  sold_names: defineTable({
    id,
    hub_id: int.references('hubs').fixed,
    upc: text.fixed,
    /** `searchText(name)`. */
    search_name: orderedText.fixed,
  })
    .unique('hub_id', 'upc', 'search_name')
    .index('sold_names_by_hub', ['hub_id', 'id']),
  order_items: defineTable({
    id,
    order_id: int.references('orders', { onDelete: 'cascade' }),
    product_id: int.references('products').fixed,
    qty: int.check('> 0'),
    /** Per unit, in cents. Frozen at checkout with the totals; null before. */
    upc: text.nullable,
    name: text.nullable,
    /** The name of its category. */
    category: text.nullable,
    /** The row by which its name and UPC are searched. */
    sold_name_id: int.references('sold_names').nullable,
    image_url: text.nullable,
    unit_price_original: int.check('>= 0').nullable,
    unit_price: int.check('>= 0').nullable,
    purchase_price: int.nullable,
    /** The line's net share after discounts, without and with its tax. Refunds use these and never prorate again. */
    net: int.check('>= 0').nullable,
    tax: int.check('>= 0').nullable,
    /** Units that `products.reserved` still counts. */
    reserved: int.check('>= 0 and reserved <= qty'),
    qty_dropped: int.check('>= 0'),
    qty_doubtful: int.check('>= 0'),
    refunded_quantity: int.check('>= 0 and refunded_quantity <= qty'),
    bins: text,
  })
    .unique('order_id', 'product_id')
    .index('order_items_by_product', ['product_id'])
    .index('order_items_by_name', ['sold_name_id', 'order_id'], 'sold_name_id is not null'),
  /** A hub's dispense time per unit: a running mean over its orders that weighs the latest ones most. */
  hub_paces: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    unit_ms: real.check('> 0'),
    samples: int,
    updated_at: instant,
  }),
}
