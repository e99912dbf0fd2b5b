import { controllerSubject, doorSubject } from '../../protocol/model/subject.ts'
import type { Context } from './context.ts'
import { setAlarm } from './ledger.ts'

/**
 * Alarms that depend on time: silent controllers, unreadable lines, doors that stay open. The actor checks
 * them at each event. Each function returns the milliseconds until time alone changes its result.
 */
export function watchHardware(context: Context): number | undefined {
  const waits = [watchControllers(context), watchLines(context), watchDoors(context)]
  return earliest(waits)
}

const earliest = (waits: readonly (number | undefined)[]): number | undefined => {
  const known = waits.filter((ms): ms is number => ms !== undefined && ms > 0)
  return known.length > 0 ? Math.min(...known) : undefined
}

/**
 * A silent controller's alarm is not raised if the controller answers again. An open alarm is cleared after
 * the controller has stayed for `steadyMs`.
 */
function watchControllers(context: Context): number | undefined {
  const { layout, devices, runtime, settings } = context
  const now = runtime.clock.monotonic()
  const waits = layout.controllers.map((controller) => {
    const subject = controllerSubject(controller)
    const since = devices.awaySince(controller)
    if (since === undefined) {
      setAlarm(context, 'controller_silent', subject, false, '')
      return undefined
    }
    if (!devices.isAway(controller)) return devices.steadyInMs(controller)
    const leftMs = since + settings.silentAlarmMs - now
    if (leftMs <= 0) setAlarm(context, 'controller_silent', subject, true, reasonOf(context, controller))
    return leftMs
  })
  return earliest(waits)
}

const reasonOf = ({ controllers }: Context, controller: string): string =>
  controllers.links().find((link) => link.controller === controller)?.reason ?? 'no answer on its line'

/** The GPIO lines of locks and doors count as one controller. */
function watchLines(context: Context): number | undefined {
  const { doors, runtime, settings } = context
  const subject = controllerSubject('gpio')
  const since = doors.unreadSince
  if (since === undefined) {
    setAlarm(context, 'controller_silent', subject, false, '')
    return undefined
  }
  const problem = doors.linesProblem
  const waitMs = problem?.isFinal === true ? 0 : settings.silentAlarmMs
  const leftMs = since + waitMs - runtime.clock.monotonic()
  if (leftMs <= 0)
    setAlarm(
      context,
      'controller_silent',
      subject,
      true,
      (problem?.reason ?? 'no line of a lock or door can be read').slice(0, 400),
    )
  return leftMs
}

/** Raises `door_left_open`: the door stays open, its lock does not lock, or its contact cannot be read. */
function watchDoors(context: Context): number | undefined {
  const { doors, runtime, settings, openSince } = context
  const now = runtime.clock.monotonic()
  const troubles = new Map(doors.troubles().map(({ door, why }) => [door, why]))
  const waits = doors.contacts().map(({ door, isOpen }) => {
    if (!isOpen) openSince.delete(door)
    else if (!openSince.has(door)) openSince.set(door, now)
    const since = openSince.get(door)
    const leftMs = since === undefined ? undefined : since + settings.doorLeftOpenMs - now
    const why =
      troubles.get(door) ?? (leftMs !== undefined && leftMs <= 0 ? 'nobody has closed it' : undefined)
    setAlarm(context, 'door_left_open', doorSubject(door), why !== undefined, why ?? '')
    return leftMs
  })
  return earliest([...waits, doors.troublesInMs()])
}
