import { DAY_MS } from '../../../protocol/model/times.ts'
import type { Day } from './days.ts'

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
 * One cached formatter per zone, because creating one is slow. A zone that this machine does not know counts as UTC: a
 * hub with a misspelled zone must still sell.
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

const clockFormat = zoneFormats({
  calendar: 'gregory',
  hourCycle: 'h23',
  ...({ year: 'numeric', month: '2-digit', day: '2-digit' } as const),
  ...({ hour: '2-digit', minute: '2-digit', second: '2-digit' } as const),
})

/** The local time of a zone at an instant, as the instant at which UTC shows the same time. */
function shownAt(zone: string, at: number): number {
  const parts = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 }
  for (const { type, value } of clockFormat(zone).formatToParts(at))
    if (type in parts) parts[type as keyof typeof parts] = Number(value)
  const { year, month, day, hour, minute, second } = parts
  const ms = ((at % 1000) + 1000) % 1000
  return Date.UTC(year, month - 1, day, hour, minute, second, ms)
}

const midnightOf = (day: Day): number => Date.parse(`${day}T00:00:00Z`)

/** The time of day in a zone at an instant: milliseconds since midnight by its clock. */
export const timeOfDay = (zone: string, at: number): number =>
  shownAt(zone, at) - midnightOf(localDay(zone, at))

/**
 * The first instant at which a zone's clock shows a day and a time (milliseconds since its midnight by that clock). If
 * the clock shows it twice: the first one. If the clock skips it: the instant of the jump.
 */
export function instantOf(zone: string, day: Day, time = 0): number {
  const wanted = midnightOf(day) + time
  // One day before and after, the clock has the offset before and after a change. No zone changes twice within two
  // days.
  const [early, late] = [wanted - DAY_MS, wanted + DAY_MS].map((at) => wanted - (shownAt(zone, at) - at))
  const shown = [early!, late!].filter((at) => shownAt(zone, at) === wanted)
  return shown.length > 0 ? Math.min(...shown) : jumpOver(zone, wanted, late!, early!)
}

/** Finds the instant of a clock jump between an instant before it and one after it. */
function jumpOver(zone: string, wanted: number, before: number, after: number): number {
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (shownAt(zone, middle) >= wanted) after = middle
    else before = middle
  }
  return after
}

/** The instant at which a day begins in a zone: midnight, or the jump if the clock skips midnight or the whole day. */
export const startOfDay = (zone: string, day: Day): number => instantOf(zone, day)

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

/** The hour that the wall clock of a zone shows at an instant: `00` to `23`. */
export const localHour = (zone: string, at: number): string =>
  String(Math.floor(minuteOfDay(zone, at) / 60)).padStart(2, '0')
