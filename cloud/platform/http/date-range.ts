import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { ApiError } from '../api-error.ts'
import { addDays } from '../calendar/days.ts'
import { startOfDay } from '../calendar/zone.ts'
import type { HubBook } from '../credentials/hub-access.ts'
import type { Queries } from '../store/database.ts'
import { numbersIn } from '../store/recordset.ts'

/** `from` and `to` of a report: days of the hub's calendar, `to` inclusive, or timestamps, `to` exclusive. */
export interface AskedRange {
  from?: string | undefined
  to?: string | undefined
}

export const isDay = (text: string): boolean => text.length === 10

/** A refusal of a range. */
export const badRange = (field: 'from' | 'to', why: string, input: string): ApiError =>
  ApiError.invalid({ loc: ['query', field], msg: `Value error, ${why}`, type: 'value_error', input })

/** The instants of a range in a time zone, `until` exclusive. */
export function rangeIn(zone: string, { from, to }: AskedRange): { since: number; until: number } {
  const since = from === undefined ? 0 : isDay(from) ? startOfDay(zone, from) : Date.parse(from)
  const until =
    to === undefined ? Number.MAX_SAFE_INTEGER : isDay(to) ? startOfDay(zone, addDays(to, 1)) : Date.parse(to)
  return { since, until }
}

/** Throws 422 if `from` is after `to`. A day is compared with a timestamp in each zone, and `from` must be later in all of them. */
export function requireOrder(zones: readonly string[], asked: AskedRange): void {
  const { from, to } = asked
  if (from === undefined || to === undefined) return
  const isAfter = (zone: string): boolean => {
    const { since, until } = rangeIn(zone, asked)
    return isDay(from) && isDay(to) ? from > to : since > until
  }
  if ((zones.length > 0 ? zones : ['UTC']).every(isAfter))
    throw badRange('from', 'must not be after `to`', from)
}

/** Restricts rows to the hubs of some books, and to a range of days of each hub's own calendar. */
export function withinRange(
  q: Queries,
  column: string,
  books: readonly HubBook[],
  asked: AskedRange,
): RawBuilder<SqlBool> {
  if (books.length === 0) return sql`1 = 0`
  const hubsOf = new Map<string, number[]>()
  for (const { hubId, timezone } of books) {
    const hubs = hubsOf.get(timezone)
    if (hubs) hubs.push(hubId)
    else hubsOf.set(timezone, [hubId])
  }
  const parts = [...hubsOf].map(([zone, hubs]) => {
    const { since, until } = rangeIn(zone, asked)
    const at = sql.ref(column)
    return sql`(hub_id in ${numbersIn(q, hubs)} and ${at} >= ${since} and ${at} < ${until})`
  })
  return sql`(${sql.join(parts, sql` or `)})`
}
