import type { Queries } from '../../platform/store/database.ts'
import { WHOLE_HUB } from './changes.ts'

/** Sums over some sales; money in cents without tax. */
export interface Totals {
  orders: number
  units: number
  revenue: number
  cost: number
  customers: number
}

const nothing: Totals = { orders: 0, units: 0, revenue: 0, cost: 0, customers: 0 }

/** The totals of periods (days, months, `all`) of a hub or one of its products; nothing where nothing was sold. */
export async function readTotals(
  q: Queries,
  hubId: number,
  periods: readonly string[],
  productId = WHOLE_HUB,
): Promise<(period: string) => Totals> {
  const rows = await q
    .selectFrom('sales_totals')
    .select(['period', 'orders', 'units', 'revenue', 'cost', 'customers'])
    .where('hub_id', '=', hubId)
    .where('period', 'in', periods)
    .where('product_id', '=', productId)
    .execute()
  const known = new Map(rows.map(({ period, ...totals }) => [period, totals]))
  return (period) => known.get(period) ?? nothing
}

/** Customers cannot be added up: whoever bought in two periods is one. */
export type Sums = Omit<Totals, 'customers'>

export function addUp(parts: readonly Totals[]): Sums {
  return parts.reduce<Sums>(
    (sum, { orders, units, revenue, cost }) => ({
      orders: sum.orders + orders,
      units: sum.units + units,
      revenue: sum.revenue + revenue,
      cost: sum.cost + cost,
    }),
    { orders: 0, units: 0, revenue: 0, cost: 0 },
  )
}
