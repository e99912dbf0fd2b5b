import type { Generated } from 'kysely'
import type { OrderStatus } from '../../../../protocol/model/order-status.ts'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Orders, and how fast hubs are with them. */
export interface OrderTables {
  orders: {
    id: Generated<number>
    user_id: number
    hub_id: Fixed<number>
    processing_status: OrderStatus
    /** Derived by `payments/payment-status.ts` from payments and refunds, and by nothing else (I6). */
    payment_status: string
    currency: Fixed<string>
    /** Frozen at checkout; null in a cart, whose prices are the products'. */
    total_price_original: number | null
    total_price_discounted: number | null
    tax_total: number | null
    total: number | null
    /** `Order.deals` as JSON: what was taken off, and already is off the totals. */
    deals: string | null
    version: number
    /** Reserved by an integrator's claim (contract §5), else null. */
    reserved_bin: number | null
    open_when_ready: Flag
    /** JSON array of bin numbers, as the hub reports them (the reserved bin before that). */
    bins: string
    /** `QueuedOrder` as it was sent to the hub, or null. */
    queued_order: string | null
    failure_reason: string | null
    created_at: Fixed<Instant>
    updated_at: Instant
    queued_at: Instant | null
    preparing_at: Instant | null
    ready_at: Instant | null
    finished_at: Instant | null
    /** When the hub began, by its own clock: what it says later of the order is measured from here. */
    hub_began_at: number | null
    /** The cart that took this one's items when a guest became a user (contract §10). */
    merged_into: number | null
  }
  order_items: {
    id: Generated<number>
    order_id: number
    product_id: Fixed<number>
    qty: number
    /** Frozen at checkout with the totals; null before. Per unit, cents. */
    upc: string | null
    name: string | null
    image_url: string | null
    unit_price_original: number | null
    unit_price: number | null
    purchase_price: number | null
    /** The line's net share after discounts, without and with its tax: refunds take from these and never re-prorate. */
    net: number | null
    tax: number | null
    /** Units still promised by `products.reserved`. */
    reserved: number
    qty_dropped: number
    qty_doubtful: number
    refunded_quantity: number
    bins: string
  }
  /** How long a hub takes to dispense a unit: a running mean over its orders, the latest ones weighing most. */
  hub_paces: { hub_id: Fixed<number>; unit_ms: number; samples: number; updated_at: Instant }
}
