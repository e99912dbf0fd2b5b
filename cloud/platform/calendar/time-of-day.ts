import { zoneFormats } from './zone-formats.ts'

const formatOf = zoneFormats({ hourCycle: 'h23', hour: '2-digit', minute: '2-digit' })

/** Minutes since midnight, as a clock on the wall shows them in a zone at an instant. An unknown zone is UTC. */
export function minuteOfDay(zone: string, at: number): number {
  let minute = 0
  for (const { type, value } of formatOf(zone).formatToParts(at)) {
    if (type === 'hour') minute += Number(value) * 60
    if (type === 'minute') minute += Number(value)
  }
  return minute
}
