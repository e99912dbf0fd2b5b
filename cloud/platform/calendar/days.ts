import { DAY_MS } from '../../../protocol/model/times.ts'

/** A day of the Gregorian calendar without a zone: `YYYY-MM-DD`. Such text sorts by time. */
export type Day = string
/** `YYYY-MM`. */
export type Month = string

const DAYS_OF_WEEK = 7
const MONTHS_OF_YEAR = 12

/** ISO 8601: the week begins on Monday. */
export const weekdays = [
  'Monday',
  'Tuesday',
  'Wednesday',
  'Thursday',
  'Friday',
  'Saturday',
  'Sunday',
] as const

export const addDays = (day: Day, count: number): Day =>
  new Date(Date.parse(`${day}T00:00:00Z`) + count * DAY_MS).toISOString().slice(0, 10)

/** Days since 1970. */
export const dayNumber = (day: Day): number => Date.parse(`${day}T00:00:00Z`) / DAY_MS

/** Monday is 0. */
export const weekdayOf = (day: Day): number => (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % DAYS_OF_WEEK

/** The seven days of the week that contains a day, from Monday. */
export function weekOf(day: Day): Day[] {
  const monday = addDays(day, -weekdayOf(day))
  return Array.from({ length: DAYS_OF_WEEK }, (_, index) => addDays(monday, index))
}

/** The ISO week that contains a day: `YYYY-Www`. Its year is that of its Thursday. */
export function weekNameOf(day: Day): string {
  const thursday = addDays(day, 3 - weekdayOf(day))
  const year = thursday.slice(0, 4)
  const week = Math.floor((dayNumber(thursday) - dayNumber(`${year}-01-01`)) / DAYS_OF_WEEK) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}

export const monthOf = (day: Day): Month => day.slice(0, 7)
export const yearOf = (day: Day): number => Number(day.slice(0, 4))

export function addMonths(month: Month, count: number): Month {
  const [year, ofYear] = month.split('-').map(Number) as [number, number]
  const index = year * MONTHS_OF_YEAR + ofYear - 1 + count
  return monthIn(Math.floor(index / MONTHS_OF_YEAR), index % MONTHS_OF_YEAR)
}

/** The twelve months of a year, from January. */
export const monthsOf = (year: number): Month[] =>
  Array.from({ length: MONTHS_OF_YEAR }, (_, index) => monthIn(year, index))

export const firstDay = (month: Month): Day => `${month}-01`

/** From 1. */
export const dayOfMonth = (day: Day): number => Number(day.slice(8))

/** The days of a month, from its first. */
export function daysOf(month: Month): Day[] {
  const first = firstDay(month)
  const count = dayOfMonth(addDays(firstDay(addMonths(month, 1)), -1))
  return Array.from({ length: count }, (_, index) => addDays(first, index))
}

const monthIn = (year: number, index: number): Month =>
  `${String(year).padStart(4, '0')}-${String(index + 1).padStart(2, '0')}`

/** ISO 8601 in UTC with a trailing `Z` (O §1), of milliseconds since the Unix epoch. */
export const timestamp = (at: number): string => new Date(at).toISOString()
export const timestampOrNull = (at: number | null): string | null => (at === null ? null : timestamp(at))
