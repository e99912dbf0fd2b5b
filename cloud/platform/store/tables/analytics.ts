import { defineTable, flag, instant, int, oneOf, text } from '../table.ts'

/** Summaries of sales, updated with each sale (`analytics/sale.ts` defines what counts). Money is cents without tax. */
export const analyticsTables = {
  /** The counted state of a paid order. A later change of the order is counted as the difference to this. */
  sales: defineTable({
    order_id: int.primaryKey.references('orders').fixed,
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    user_id: int,
    sold_at: instant,
    /** `YYYY-MM-DD` in the hub's time zone. */
    day: text,
    /** 0 if it was refunded in full, else 1. */
    orders: int,
    /** Units of all lines. */
    units: int,
    revenue: int,
    /** JSON: `SaleLine[]`. */
    lines: text,
  }).index('sales_by_hub', ['hub_id', 'owner_id', 'sold_at', 'orders', 'units', 'revenue']),
  /** Sums over the sales of months and of all time. `sales_days` has those of days. */
  sales_totals: defineTable({
    hub_id: int.references('hubs').fixed,
    /** A hub that was moved has figures of each of its owners. */
    owner_id: int.references('owners').fixed,
    /** `YYYY-MM` or `all`. */
    period: text.fixed,
    /** 0: the whole hub. */
    product_id: int.fixed,
    orders: int,
    units: int,
    revenue: int,
    cost: int,
    /** Distinct customers. Set for hubs. */
    customers: int,
  }).primaryKey('hub_id', 'owner_id', 'period', 'product_id'),
  /** Sums over the sales of days: of a hub, and of its hours, products and categories. */
  sales_days: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** `utc_hour` serves parts of a day. Its `day` and hour are those of UTC, which has no clock changes. */
    part: oneOf(['hub', 'hour', 'utc_hour', 'product', 'category']).fixed,
    /** `YYYY-MM-DD` in the hub's time zone. */
    day: text.fixed,
    /** The hour (`00` to `23`), the UPC or the category's name at the sale; empty for the hub. */
    key: text.fixed,
    /** The product's name at the sale; empty for other parts. */
    name: text.fixed,
    /** 0 for other parts. */
    product_id: int.fixed,
    orders: int,
    units: int,
    revenue: int,
    cost: int,
    discount: int,
    tax: int,
    refunded: int,
  }).primaryKey('hub_id', 'owner_id', 'part', 'day', 'key', 'name', 'product_id'),
  /** How often each customer bought in a month or ever. It distinguishes new customers from returning ones. */
  sales_customers: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** `YYYY-MM` or `all`. */
    period: text.fixed,
    user_id: int.fixed,
    orders: int,
  }).primaryKey('hub_id', 'owner_id', 'period', 'user_id'),
  /**
   * The calendar of a hub's summaries. It counts every sale until the summaries are rebuilt, even if the hub's zone
   * changes.
   */
  sales_calendars: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    timezone: text,
    /** Whether the summaries cover the hub's whole past. */
    is_whole: flag,
    /** Counts rebuilds of the summaries. Only the latest rebuild may mark them as complete. */
    run: int,
  }),
}
