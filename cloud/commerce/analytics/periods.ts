import {
  addDays,
  addMonths,
  firstDay,
  monthOf,
  monthsOf,
  weekOf,
  yearOf,
  type Day,
} from '../../platform/calendar/days.ts'

/** A stretch of the calendar, as days or months of the summaries that make it up. */
export interface Period {
  first: Day
  /** The day after its last one. */
  next: Day
  parts: readonly string[]
}

export const timeframes = ['daily', 'weekly', 'monthly', 'yearly'] as const
export type Timeframe = (typeof timeframes)[number]

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
