import type { Day } from './days.ts'

const MINUTE_MS = 60_000
/** No zone's midnight is further from that of UTC. */
const REACH = 15 * 60

/** Whether this machine knows a time zone by that name. */
export function isZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en-US', { timeZone: name }))
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/**
 * Formats of one kind by zone, each made once because making one is slow. A zone that this machine does not know is UTC: a
 * hub whose zone the operator misspelled must still sell.
 */
function zoneFormats(kind: Intl.DateTimeFormatOptions): (zone: string) => Intl.DateTimeFormat {
  const formats = new Map<string, Intl.DateTimeFormat>()
  return (zone) => {
    const known = formats.get(zone)
    if (known) return known
    const timeZone = isZone(zone) ? zone : 'UTC'
    const format = new Intl.DateTimeFormat('en-US', { ...kind, timeZone, numberingSystem: 'latn' })
    formats.set(zone, format)
    return format
  }
}

const dayFormat = zoneFormats({ calendar: 'gregory', year: 'numeric', month: '2-digit', day: '2-digit' })

/** The calendar day in a zone at an instant (milliseconds since the Unix epoch). */
export function localDay(zone: string, at: number): Day {
  const parts = { year: '', month: '', day: '' }
  for (const { type, value } of dayFormat(zone).formatToParts(at))
    if (type === 'year' || type === 'month' || type === 'day') parts[type] = value
  return `${parts.year.padStart(4, '0')}-${parts.month}-${parts.day}`
}

/**
 * The instant at which a day begins in a zone: midnight, or the first instant after it where the clocks jump over midnight
 * (or over the whole day). Exact to the minute: for a century no zone has changed its clocks within one.
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

const timeFormat = zoneFormats({ hourCycle: 'h23', hour: '2-digit', minute: '2-digit' })

/** Minutes since local midnight, by the wall clock of a zone at an instant. */
export function minuteOfDay(zone: string, at: number): number {
  let minute = 0
  for (const { type, value } of timeFormat(zone).formatToParts(at)) {
    if (type === 'hour') minute += Number(value) * 60
    if (type === 'minute') minute += Number(value)
  }
  return minute
}
