import { sql } from 'kysely'
import type { SalesOverview } from '../../../protocol/contract/owner-analytics.ts'
import {
  addDays,
  addMonths,
  dayOfMonth,
  daysOf,
  firstDay,
  monthOf,
  monthsOf,
  weekOf,
  yearOf,
  timestamp,
  type Day,
  type Month,
} from '../../platform/calendar/days.ts'
import { instantOf, localDay, startOfDay, timeOfDay } from '../../platform/calendar/zone.ts'
import type { Queries } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'
import { HOUR_MS, hourOf, utcHour, WHOLE_HUB } from './sale.ts'
import { numbersIn } from '../../platform/store/recordset.ts'

/** Sums over some sales; money in cents without tax. */
interface Totals {
  orders: number
  units: number
  revenue: number
  cost: number
  customers: number
}

const nothing: Totals = { orders: 0, units: 0, revenue: 0, cost: 0, customers: 0 }

/** A hub under an owner. */
export interface Book {
  hubId: number
  ownerId: number
}

/** The totals of periods of a hub (days, months, `all`) or of one of its products (months, `all`). */
export async function readTotals(
  q: Queries,
  { hubId, ownerId }: Book,
  periods: readonly string[],
  productId = WHOLE_HUB,
): Promise<(period: string) => Totals> {
  const days = q
    .selectFrom('sales_days')
    .select((eb) => ['day as period', 'orders', 'units', 'revenue', 'cost', eb.lit(0).as('customers')])
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .where('part', '=', 'hub')
    .where('day', 'in', periods)
  const rows = await q
    .selectFrom('sales_totals')
    .select(['period', 'orders', 'units', 'revenue', 'cost', 'customers'])
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .where('period', 'in', periods)
    .where('product_id', '=', productId)
    .unionAll(days)
    .execute()
  const known = new Map(rows.map(({ period, ...totals }) => [period, totals]))
  return (period) => known.get(period) ?? nothing
}

/** Customers cannot be added: a customer of two periods counts once. */
type Sums = Pick<Totals, 'orders' | 'units' | 'revenue'>

export function addUp(parts: readonly Sums[]): Sums {
  return parts.reduce<Sums>(
    (sum, { orders, units, revenue }) => ({
      orders: sum.orders + orders,
      units: sum.units + units,
      revenue: sum.revenue + revenue,
    }),
    { orders: 0, units: 0, revenue: 0 },
  )
}

/** A period of the calendar, as days or months of the summaries. */
interface Period {
  first: Day
  /** The day after its last one. */
  next: Day
  parts: readonly string[]
}

export const timeframes = ['daily', 'weekly', 'monthly', 'yearly'] as const
type Timeframe = (typeof timeframes)[number]

/** The period of the calendar that contains a day; weeks are ISO weeks. */
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

/** The beginning of a period: whole parts of the summaries, and a part of one more day. */
interface Stretch {
  parts: readonly string[]
  /** The day that counts only up to a time; null if there is none. */
  last: Day | null
}

/**
 * The part of the previous period that corresponds to the elapsed part of the current one. A weekday corresponds to the
 * same weekday, a day of the month to the same number. A month without that day counts in full.
 */
export const stretchBefore: Record<Timeframe, (day: Day) => Stretch> = {
  daily: (day) => ({ parts: [], last: addDays(day, -1) }),
  weekly(day) {
    const last = addDays(day, -7)
    return { parts: weekOf(last).filter((one) => one < last), last }
  },
  monthly: (day) => stretchOfMonth(addMonths(monthOf(day), -1), dayOfMonth(day)),
  yearly(day) {
    const month = addMonths(monthOf(day), -12)
    const { parts, last } = stretchOfMonth(month, dayOfMonth(day))
    return { parts: [...monthsOf(yearOf(day) - 1).filter((one) => one < month), ...parts], last }
  },
}

function stretchOfMonth(month: Month, number: number): Stretch {
  const days = daysOf(month)
  const last = days[number - 1]
  return last === undefined ? { parts: [month], last: null } : { parts: days.slice(0, number - 1), last }
}

interface SoldBetween extends Book {
  from: number
  wholeFrom: number
  firstDay: Day
  firstHour: string
  wholeTo: number
  /** The day and hour after the last whole hour. */
  nextDay: Day
  nextHour: string
  to: number
}

/** The whole hours, and the sales before and after them: few rows, however much a day sells. */
const soldBetween = statement((q, wanted: SoldBetween) => {
  const { hubId, ownerId, from, wholeFrom, wholeTo, to } = wanted
  const sales = (since: number, until: number) =>
    q
      .selectFrom('sales')
      .select(['orders', 'units', 'revenue'])
      .where('hub_id', '=', hubId)
      .where('owner_id', '=', ownerId)
      .where('sold_at', '>=', since)
      .where('sold_at', '<', until)
  const hours = q
    .selectFrom('sales_days')
    .select(['orders', 'units', 'revenue'])
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .where('part', '=', sql.lit('utc_hour'))
    .where(sql<boolean>`(day, key) >= (${wanted.firstDay}, ${wanted.firstHour})`)
    .where(sql<boolean>`(day, key) < (${wanted.nextDay}, ${wanted.nextHour})`)
  return q
    .selectFrom(hours.unionAll(sales(from, wholeFrom)).unionAll(sales(wholeTo, to)).as('sold'))
    .select((eb) => [
      eb.fn.coalesce(eb.fn.sum<number>('orders'), eb.lit(0)).as('orders'),
      eb.fn.coalesce(eb.fn.sum<number>('units'), eb.lit(0)).as('units'),
      eb.fn.coalesce(eb.fn.sum<number>('revenue'), eb.lit(0)).as('revenue'),
    ])
})

/** The sales of a hub between two instants. */
async function sumBetween(q: Queries, book: Book, from: number, to: number): Promise<Sums> {
  const [wholeFrom, wholeTo] = [hourOf(from - 1) + HOUR_MS, hourOf(to)]
  const isWithinAnHour = wholeFrom > wholeTo
  const hours = isWithinAnHour ? { wholeFrom: to, wholeTo: to } : { wholeFrom, wholeTo }
  const [first, next] = [utcHour(hours.wholeFrom), utcHour(hours.wholeTo)]
  const [sums] = await soldBetween(q, {
    ...book,
    from,
    to,
    ...hours,
    firstDay: first.day,
    firstHour: first.key,
    nextDay: next.day,
    nextHour: next.key,
  })
  return sums!
}

interface Hub extends Book {
  timezone: string
}

/** O §4.4: the current day, week, month and year to date, each with the same part of the previous one. */
export async function salesOverview(q: Queries, hub: Hub, now: number): Promise<SalesOverview> {
  const today = localDay(hub.timezone, now)
  const periods = timeframes.map((timeframe) => ({
    timeframe,
    current: periodOf[timeframe](today),
    before: stretchBefore[timeframe](today),
  }))
  const parts = periods.flatMap(({ current, before }) => [...current.parts, ...before.parts])
  const totals = await readTotals(q, hub, [...new Set(parts)])
  const described: [Timeframe, SalesOverview['daily']][] = []
  for (const { timeframe, current, before } of periods) {
    const days = before.parts.map(totals)
    const previous = before.last === null ? days : [...days, await sumOfDay(q, hub, before.last, now)]
    const sums = { current: addUp(current.parts.map(totals)), previous: addUp(previous) }
    described.push([timeframe, describe(hub.timezone, current, sums)])
  }
  return {
    hub_id: hub.hubId,
    timezone: hub.timezone,
    generated_at: timestamp(now),
    ...(Object.fromEntries(described) as Pick<SalesOverview, Timeframe>),
  }
}

/** The sales of a hub on a day, until its clock reached the present time of day. */
function sumOfDay(q: Queries, { timezone, ...book }: Hub, day: Day, now: number): Promise<Sums> {
  const from = startOfDay(timezone, day)
  const to = instantOf(timezone, day, timeOfDay(timezone, now) + 1)
  return sumBetween(q, book, from, Math.min(to, startOfDay(timezone, addDays(day, 1))))
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

/** Rounded to hundredths; null if there is no base. */
function changePercent(before: number, after: number): number | null {
  if (before <= 0) return null
  return Math.round(((after - before) / before) * 10_000) / 100
}

/** Sent while a hub's summaries are being built again: its figures are too low until then. */
export const INCOMPLETE = { 'X-Incomplete': 'the summaries of this hub are being rebuilt' }

const underWay = statement((q, { hubIds }: { hubIds: readonly number[] }) =>
  q
    .selectFrom('sales_calendars')
    .select('hub_id')
    .where('hub_id', 'in', numbersIn(q, hubIds))
    .where('is_whole', '=', 0),
)

/** Read it after the figures: values that were read before a rebuild began are correct. */
export const areIncomplete = async (q: Queries, hubIds: readonly number[]): Promise<boolean> =>
  (await underWay(q, { hubIds })).length > 0

/** The header of an answer with figures of hubs. Read it after the figures, as `areIncomplete`. */
export const incompleteOf = async (q: Queries, hubIds: readonly number[]): Promise<Record<string, string>> =>
  (await areIncomplete(q, hubIds)) ? INCOMPLETE : {}
