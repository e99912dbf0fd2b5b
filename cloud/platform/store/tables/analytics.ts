import { defineTable, flag, instant, int, text } from '../table.ts'

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
    /** Units of all lines. */
    units: int,
    revenue: int,
    /** JSON: `SaleLine[]`. */
    lines: text,
  }).index('sales_by_hub', ['hub_id', 'owner_id', 'sold_at', 'units', 'revenue']),
  /** Sums over sales. Products (`product_id` above 0) have months and `all`; hubs (0) also have days. */
  sales_totals: defineTable({
    hub_id: int.references('hubs').fixed,
    /** A hub that was moved has figures of each of its owners. */
    owner_id: int.references('owners').fixed,
    /** `YYYY-MM-DD`, `YYYY-MM` or `all`. */
    period: text.fixed,
    /** 0: the whole hub. */
    product_id: int.fixed,
    orders: int,
    units: int,
    revenue: int,
    cost: int,
    /** Distinct customers. Set for a hub's months and `all`. */
    customers: int,
  }).primaryKey('hub_id', 'owner_id', 'period', 'product_id'),
  /** Sums over the sales of whole hours, only for hubs. They serve parts of a day. */
  sales_hours: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** Start of the hour in UTC, which has no clock changes. */
    hour: instant.fixed,
    orders: int,
    units: int,
    revenue: int,
  }).primaryKey('hub_id', 'owner_id', 'hour'),
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
