import type { Day } from './days.ts'
import { zoneFormats } from './zone-formats.ts'

const MINUTE_MS = 60_000
/** No zone's midnight is further from that of UTC. */
const REACH = 15 * 60

const formatOf = zoneFormats({ calendar: 'gregory', year: 'numeric', month: '2-digit', day: '2-digit' })

/** The day that a calendar on the wall shows in a zone at an instant (milliseconds since the Unix epoch). */
export function localDay(zone: string, at: number): Day {
  const parts = { year: '', month: '', day: '' }
  for (const { type, value } of formatOf(zone).formatToParts(at))
    if (type === 'year' || type === 'month' || type === 'day') parts[type] = value
  return `${parts.year.padStart(4, '0')}-${parts.month}-${parts.day}`
}

/**
 * The instant at which a day begins in a zone: midnight, or where the clocks jump over midnight (or over the whole day)
 * the first instant after it. To the minute: clocks have not been changed in between for long.
 */
export function startOfDay(zone: string, day: Day): number {
  const utc = Date.parse(`${day}T00:00:00Z`)
  const minute = (count: number): number => utc + count * MINUTE_MS
  let before = -REACH
  let from = REACH
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2)
    if (localDay(zone, minute(middle)) >= day) from = middle
    else before = middle
  }
  return minute(from)
}
