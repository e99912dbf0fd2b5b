import type { Context } from '../context.ts'
import { readingOf, type Readings } from './observation.ts'

/** The current values of all sensors and lines. */
export function readingsOf(context: Context): Readings {
  const { layout, devices, doors, controllers, strangers } = context
  const content = (occupied: boolean | undefined): string =>
    occupied === undefined ? 'unknown' : occupied ? 'something' : 'empty'
  return new Map([
    ...layout.bins.flatMap(({ number }) => {
      const { door, lift, occupied } = devices.bin(number)
      return [
        [readingOf.door(number), door],
        [readingOf.lift(number), lift],
        [readingOf.content(number), content(occupied)],
      ] as const
    }),
    ...doors.readings().map(({ door, status }) => [readingOf.doorway(door), status] as const),
    ...controllers.links().map(({ controller, up, firmware }) => {
      const is = strangers.get(controller)?.isForeign
        ? 'not of this hub and line'
        : up
          ? `connected, firmware ${firmware ?? 'unknown'}`
          : 'not connected'
      return [readingOf.controller(controller), is] as const
    }),
  ])
}
