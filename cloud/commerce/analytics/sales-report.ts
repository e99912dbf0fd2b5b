import {
  salesColumns,
  type Figures,
  type GroupBy,
  type SalesRow,
} from '../../../protocol/contract/owner-reports.ts'
import { addDays, dayNumber, monthOf, weekNameOf, timestamp, type Day } from '../../platform/calendar/days.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import { csvLine, csvLines } from '../../platform/csv.ts'
import { inBooks, readableBooks, type HubBook } from '../../platform/credentials/hub-access.ts'
import { badRange } from '../../platform/http/date-range.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { incompleteOf } from './totals.ts'
import { saleFigures, type SaleFigures } from './sale.ts'

/** Days of the default range. */
const DEFAULT_DAYS = 7
const MAX_DAYS = 366

/** Sales of any range of days. They come from the sums of days, so the cost does not grow with the orders. */
export const salesReportHandlers = ({
  db,
  runtime,
  settings,
}: CloudContext): Handlers<'owner.sales.report'> => ({
  async 'owner.sales.report'({ query, credential, wantsOther }) {
    const { kysely: q } = db
    const now = runtime.clock.now()
    const books = await readableBooks(q, credential, query.hub_id)
    const { from, to } = rangeOf(query, books, now)
    const { group_by } = query
    const sums = await readSums(q, books, { from, to, by: group_by })
    const data = rowsOf(group_by, sums, { from, to, books })
    const headers = await incompleteOf(
      q,
      books.map(({ hubId }) => hubId),
    )
    if (wantsOther) return reply(csvLine(salesColumns) + csvLines(salesColumns, data), { headers })
    const totals = figuresOf(
      group_by === 'product' || group_by === 'category'
        ? await readSums(q, books, { from, to, by: 'day' })
        : sums,
    )
    const generated_at = timestamp(now)
    return reply({ from, to, group_by, currency: settings.currency, generated_at, totals, data }, { headers })
  },
})

interface Range {
  from: Day
  to: Day
}

/** The range of a request: by default the last days, up to the latest day that one of the hubs has. */
function rangeOf(
  asked: { from?: Day | undefined; to?: Day | undefined },
  books: readonly HubBook[],
  now: number,
): Range {
  const zones = books.length > 0 ? books.map(({ timezone }) => timezone) : ['UTC']
  const today = zones.map((zone) => localDay(zone, now)).reduce((a, b) => (a > b ? a : b))
  const { from, to = from === undefined ? today : addDays(from, DEFAULT_DAYS - 1) } = asked
  const range = { from: from ?? addDays(to, 1 - DEFAULT_DAYS), to }
  if (range.from > to) throw badRange('from', 'must not be after `to`', range.from)
  if (daysIn(range) > MAX_DAYS) throw badRange('to', `at most ${MAX_DAYS} days from \`from\``, to)
  return range
}

const daysIn = ({ from, to }: Range): number => dayNumber(to) - dayNumber(from) + 1

interface Sums extends SaleFigures {
  key: string
  name: string
  orders: number
}

const groups = {
  day: ['hub', 'day'],
  week: ['hub', 'day'],
  month: ['hub', 'day'],
  hub: ['hub', 'hub_id'],
  hour: ['hour', 'key'],
  product: ['product', 'key'],
  category: ['category', 'key'],
} as const satisfies Record<GroupBy, readonly [part: string, key: string]>

/** Sums by their key; a product of several names has a row for each. */
async function readSums(
  q: Queries,
  books: readonly Pick<HubBook, 'hubId' | 'ownerId'>[],
  { from, to, by }: Range & { by: GroupBy },
): Promise<Sums[]> {
  const [part, key] = groups[by]
  const rows = await q
    .selectFrom('sales_days')
    .select([key, 'name', (eb) => eb.fn.max('day').as('last')])
    .select(({ fn }) => ['orders' as const, ...saleFigures].map((name) => fn.sum<number>(name).as(name)))
    .where(inBooks(q, books))
    .where('part', '=', part)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .groupBy([key, 'name'])
    .orderBy('last')
    .orderBy('name')
    .execute()
  return rows.map((row) => ({ ...row, key: String(row[key as keyof typeof row]) }))
}

/** The figures of a hub's day under an owner. */
export const readDay = async (
  q: Queries,
  book: Pick<HubBook, 'hubId' | 'ownerId'>,
  day: Day,
): Promise<Figures> => figuresOf(await readSums(q, [book], { from: day, to: day, by: 'day' }))

/** Times are zero-filled, in order. Other rows are sorted by revenue. */
function rowsOf(
  by: GroupBy,
  sums: readonly Sums[],
  { from, to, books }: Range & { books: readonly HubBook[] },
): SalesRow[] {
  const nameOfTime: Partial<Record<GroupBy, (key: string) => string>> = {
    day: (day) => day,
    week: weekNameOf,
    month: monthOf,
    hour: (hour) => hour,
  }
  const timeOf = nameOfTime[by]
  const rows = new Map<string, Sums[]>()
  if (by === 'hour') for (let hour = 0; hour < 24; hour += 1) rows.set(String(hour).padStart(2, '0'), [])
  else if (timeOf)
    for (let day = 0; day < daysIn({ from, to }); day += 1) rows.set(timeOf(addDays(from, day)), [])
  if (by === 'hub') for (const { hubId, isCurrent } of books) if (isCurrent) rows.set(String(hubId), [])
  for (const sum of sums) {
    const key = timeOf ? timeOf(sum.key) : sum.key
    rows.set(key, [...(rows.get(key) ?? []), sum])
  }
  const named = [...rows].map(([key, own]) => ({ key, name: nameOf(by, key, own, books), ...figuresOf(own) }))
  if (timeOf) return named
  return named
    .filter((row) => by === 'hub' || isSold(row))
    .toSorted((a, b) => b.gross_revenue - a.gross_revenue || (a.key < b.key ? -1 : 1))
}

function nameOf(by: GroupBy, key: string, sums: readonly Sums[], books: readonly HubBook[]): string | null {
  switch (by) {
    case 'hub':
      return books.find(({ hubId }) => String(hubId) === key)!.name
    case 'product':
      // The name of its latest sale.
      return sums.at(-1)!.name
    case 'category':
      return key
    case 'day':
    case 'week':
    case 'month':
    case 'hour':
      return null
  }
}

const isSold = ({ total_orders, refunded_total }: Figures): boolean =>
  total_orders !== 0 || refunded_total !== 0

function figuresOf(sums: readonly Sums[]): Figures {
  const total = (of: 'orders' | keyof SaleFigures): number => sums.reduce((sum, row) => sum + row[of], 0)
  const [revenue, cost] = [total('revenue'), total('cost')]
  return {
    total_orders: total('orders'),
    units_sold: total('units'),
    gross_revenue: revenue,
    discount_total: total('discount'),
    tax_total: total('tax'),
    refunded_total: total('refunded'),
    cost_of_goods: cost,
    net_profit: revenue - cost,
  }
}
