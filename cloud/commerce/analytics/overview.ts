import type { SalesOverview } from '../../../protocol/contract/owner-analytics.ts'
import { localDay, startOfDay } from '../../platform/calendar/zone.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { Queries } from '../../platform/store/database.ts'
import { periodBefore, periodOf, timeframes, type Period, type Timeframe } from './periods.ts'
import { addUp, readTotals, type Sums } from './totals.ts'

/** O §4.4, contract §7: the current day, week, month and year to date, each beside the whole one before. */
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
