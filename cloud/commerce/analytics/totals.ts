import type { SalesOverview } from '../../../protocol/contract/owner-analytics.ts'
import {
  addDays,
  addMonths,
  type Day,
  firstDay,
  monthOf,
  monthsOf,
  weekOf,
  yearOf,
} from '../../platform/calendar/days.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { localDay, startOfDay } from '../../platform/calendar/zone.ts'
import type { Queries } from '../../platform/store/database.ts'
import { WHOLE_HUB } from './sale.ts'

/** Sums over some sales; money in cents without tax. */
interface Totals {
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
type Sums = Omit<Totals, 'customers'>

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

/** A stretch of the calendar, as days or months of the summaries that make it up. */
interface Period {
  first: Day
  /** The day after its last one. */
  next: Day
  parts: readonly string[]
}

export const timeframes = ['daily', 'weekly', 'monthly', 'yearly'] as const
type Timeframe = (typeof timeframes)[number]

/** The period of the calendar in which a day lies; weeks are ISO's. */
export const periodOf: Record<Timeframe, (day: Day) => Period> = {
  daily: (day) => ({ first: day, next: addDays(day, 1), parts: [day] }),
  weekly(day) {
    const week = weekOf(day)
    return { first: week[0]!, next: addDays(week[0]!, week.length), parts: week }
  },
  monthly(day) {
    const month = monthOf(day)
    return { first: firstDay(month), next: firstDay(addMonths(month, 1)), parts: [month] }
  },
  yearly(day) {
    const months = monthsOf(yearOf(day))
    return { first: firstDay(months[0]!), next: firstDay(addMonths(months[0]!, 12)), parts: months }
  },
}

/** The whole period before the one in which a day lies. */
export function periodBefore(timeframe: Timeframe, day: Day): Period {
  return periodOf[timeframe](addDays(periodOf[timeframe](day).first, -1))
}

/** O §4.4: the current day, week, month and year to date, each beside the whole one before. */
export async function salesOverview(
  q: Queries,
  hub: { id: number; timezone: string },
  now: number,
): Promise<SalesOverview> {
  const today = localDay(hub.timezone, now)
  const periods = timeframes.map((timeframe) => ({
    timeframe,
    current: periodOf[timeframe](today),
    previous: periodBefore(timeframe, today),
  }))
  const parts = periods.flatMap(({ current, previous }) => [...current.parts, ...previous.parts])
  const totals = await readTotals(q, hub.id, [...new Set(parts)])
  const sumOf = (period: Period): Sums => addUp(period.parts.map(totals))
  const described = periods.map(({ timeframe, current, previous }) => [
    timeframe,
    describe(hub.timezone, current, { current: sumOf(current), previous: sumOf(previous) }),
  ])
  return {
    hub_id: hub.id,
    timezone: hub.timezone,
    generated_at: timestamp(now),
    ...(Object.fromEntries(described) as Pick<SalesOverview, Timeframe>),
  }
}

function describe(
  zone: string,
  period: Period,
  { current, previous }: { current: Sums; previous: Sums },
): SalesOverview['daily'] {
  return {
    period_start: timestamp(startOfDay(zone, period.first)),
    period_end: timestamp(startOfDay(zone, period.next)),
    ...figures(current),
    previous: figures(previous),
    change_pct: changePercent(previous.revenue, current.revenue),
  }
}

const figures = ({ revenue, orders, units }: Sums): SalesOverview['daily']['previous'] => ({
  gross_revenue: revenue,
  total_orders: orders,
  units_sold: units,
  average_order_value: orders === 0 ? 0 : Math.floor(revenue / orders + 0.5),
})

/** Rounded to hundredths; null where there is nothing to compare with. */
function changePercent(before: number, after: number): number | null {
  if (before <= 0) return null
  return Math.round(((after - before) / before) * 10_000) / 100
}
