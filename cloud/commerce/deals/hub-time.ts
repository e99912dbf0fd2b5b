import { localDay } from '../../platform/calendar/zone.ts'
import { weekdayOf } from '../../platform/calendar/days.ts'
import { minuteOfDay } from '../../platform/calendar/zone.ts'
import type { HubTime } from './engine/judge-deal.ts'

/** The calendar and the clock of a hub at an instant. */
export function hubTime(timezone: string, at: number): HubTime {
  const day = localDay(timezone, at)
  return { day, weekday: weekdayOf(day) + 1, minute: minuteOfDay(timezone, at) }
}
