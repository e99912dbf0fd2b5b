import type { Fixed } from './columns.ts'

/** Sales, summed up while they happen (`analytics/sale.ts` says what counts). Money is cents without tax. */
export interface AnalyticsTables {
  /** What the summaries hold of a paid order: the next change of it is counted as the difference to this. */
  sales: {
    order_id: Fixed<number>
    user_id: number
    /** `YYYY-MM-DD` in the hub's time zone. */
    day: string
    /** JSON: `SaleLine[]`. */
    lines: string
  }
  /** Sums over sales. Of products (`product_id` above 0) there are months and the whole, of hubs (0) days too. */
  sales_totals: {
    hub_id: Fixed<number>
    /** `YYYY-MM-DD`, `YYYY-MM` or `all`. */
    period: Fixed<string>
    /** 0: the whole hub. */
    product_id: Fixed<number>
    orders: number
    units: number
    revenue: number
    cost: number
    /** Different customers; of a hub's months and of its whole. */
    customers: number
  }
  /** Who bought in a month, or ever, and how often: for telling a new customer from a known one. */
  sales_customers: {
    hub_id: Fixed<number>
    /** `YYYY-MM` or `all`. */
    period: Fixed<string>
    user_id: Fixed<number>
    orders: number
  }
  /** The time zone in which a hub's summaries are kept; another one than the hub's, or none: they are to be made anew. */
  sales_calendars: {
    hub_id: Fixed<number>
    timezone: string | null
    /** Counts the times that the summaries were made anew; whoever began the last one may call it done. */
    run: number
  }
}
