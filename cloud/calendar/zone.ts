import type { Day } from './days.ts'

const MINUTE_MS = 60_000
/** No zone's midnight is further from that of UTC. */
const REACH = 15 * 60

const formats = new Map<string, Intl.DateTimeFormat>()

/**
 * Whether this machine knows a time zone by that name. What an operator typed wrong must not stop the money: such a hub's
 * days are those of UTC (`formatOf`).
 */
export function isZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en-US', { timeZone: name }))
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

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

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: isZone(zone) ? zone : 'UTC',
    calendar: 'gregory',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  formats.set(zone, format)
  return format
}
