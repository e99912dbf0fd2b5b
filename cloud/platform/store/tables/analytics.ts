import { defineTable, flag, instant, int, text } from '../table.ts'

/** Sales, summed up while they happen (`analytics/sale.ts` says what counts). Money is cents without tax. */
export const analyticsTables = {
  /** What the summaries hold of a paid order: the next change of it is counted as the difference to this. */
  sales: defineTable({
    order_id: int.primaryKey.references('orders').fixed,
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    user_id: int,
    sold_at: instant,
    /** `YYYY-MM-DD` in the hub's time zone. */
    day: text,
    /** Of all its lines. */
    units: int,
    revenue: int,
    /** JSON: `SaleLine[]`. */
    lines: text,
  }).index('sales_by_hub', ['hub_id', 'owner_id', 'sold_at', 'units', 'revenue']),
  /** Sums over sales. Of products (`product_id` above 0) there are months and the whole, of hubs (0) days too. */
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
    /** Different customers; of a hub's months and of its whole. */
    customers: int,
  }).primaryKey('hub_id', 'owner_id', 'period', 'product_id'),
  /** Sums over the sales of whole hours, of hubs alone: for a part of a day. */
  sales_hours: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** When the hour begins, by the clock of UTC: no zone's clock changes it. */
    hour: instant.fixed,
    orders: int,
    units: int,
    revenue: int,
  }).primaryKey('hub_id', 'owner_id', 'hour'),
  /** Who bought in a month, or ever, and how often: for telling a new customer from a known one. */
  sales_customers: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    /** `YYYY-MM` or `all`. */
    period: text.fixed,
    user_id: int.fixed,
    orders: int,
  }).primaryKey('hub_id', 'owner_id', 'period', 'user_id'),
  /** In what a hub's summaries are kept: every sale is counted by it until they are made anew, whatever the hub's zone has become. */
  sales_calendars: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    timezone: text,
    /** All of its past is in them. */
    is_whole: flag,
    /** Counts the times that the summaries were made anew; whoever began the last one may call it done. */
    run: int,
  }),
}
