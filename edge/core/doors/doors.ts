import { fridgeDoor, fridgeSides, MAIN_DOOR } from '../../../protocol/model/hardware.ts'
import type { CommandBody } from '../../../protocol/model/hub-commands.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { CommandEnd } from '../../journal/state.ts'
import { finishCommand } from '../command-results.ts'
import { isUsable, type Context } from '../context.ts'
import type { DoorEvents, DoorStatus } from '../../hardware/doors.ts'
import { doorSubject } from '../../../protocol/model/subject.ts'
import { cabinetDevice } from '../layout.ts'
import { setAlarm } from '../ledger.ts'
import { longestMs, runningMs } from '../motion-time.ts'

/** Commands for doors with GPIO locks. */
type DoorCommand = Extract<CommandBody, { name: 'open_fridge' | 'close_fridge' | 'open_main_door' }>

/**
 * Starts a door command. The row is journaled in the current transaction, and the lock is driven only after
 * the commit (I1). Returns the reason if there is no lock to drive. Interlocks are checked after the commit,
 * because the same transaction may have started a dispense.
 */
export function beginDoorCommand(context: Context, id: string, body: DoorCommand): CommandReason | undefined {
  const doors = doorsOf(context, body)
  if (doors.length === 0) return 'not_found'
  context.store.afterCommit(() => {
    const end = carryOut(context, body, doors)
    context.handleUnrepeated(() => finishCommand(context, id, end))
  })
  return undefined
}

function carryOut(context: Context, body: DoorCommand, doors: readonly string[]): CommandEnd {
  const hindrance = hindranceOf(context, body)
  const failures = hindrance === undefined ? doors.flatMap((door) => drive(context, body, door) ?? []) : []
  const refusal = hindrance ?? failures.find((reason) => reason === 'interlock')
  if (refusal) return { outcome: 'refused', reason: refusal, data: null }
  const data = { door: leastClosed(doors.map((door) => context.doors.status(door))) }
  return failures.length === 0
    ? { outcome: 'executed', reason: null, data }
    : { outcome: 'failed', reason: 'fault', data }
}

/** Returns the reason if the lock was not driven. */
function drive(context: Context, body: DoorCommand, door: string): CommandReason | undefined {
  const { doors, settings } = context
  switch (body.name) {
    case 'open_main_door':
    case 'open_fridge': {
      const { mainUnlockMs, fridgeUnlockMs } = settings
      const unlocking = unlockDoor(context, door, body.name === 'open_fridge' ? fridgeUnlockMs : mainUnlockMs)
      return unlocking.ok ? undefined : unlocking.reason
    }
    case 'close_fridge':
      return doors.lock(door) ? undefined : 'fault'
  }
}

export type Unlocking =
  { ok: true } | { ok: false; reason: 'fault' } | { ok: false; reason: 'interlock'; why: string }

/**
 * Unlocks a door for a bounded time, for a command or a person. While a row behind a fridge door turns, the
 * door stays locked. Then the hub starts no row there until the person had time to unlock it again: otherwise
 * a large order would keep the person out.
 */
export const unlockDoor = (context: Context, door: string, forMs: number): Unlocking =>
  unlockUnlessTurning(context, door, { forMs, turningMs: turningMs(context, door) })

/** `turningMs`: milliseconds for which a row behind the door may still turn. */
export function unlockUnlessTurning(
  { doors, settings }: Pick<Context, 'doors' | 'settings'>,
  door: string,
  { forMs, turningMs: leftMs }: { forMs: number; turningMs: number },
): Unlocking {
  if (leftMs > 0) {
    doors.reserve(door, leftMs + settings.fridgeUnlockMs)
    return { ok: false, reason: 'interlock', why: turningText(leftMs) }
  }
  return doors.unlock(door, forMs) ? { ok: true } : { ok: false, reason: 'fault' }
}

const turningText = (leftMs: number): string =>
  `A row behind this door may still turn. Unlock the door when the row has stopped, at the latest in ${Math.ceil(leftMs / 1000)} s.`

/** Milliseconds for which a row behind a fridge door may still turn; 0 if none turns. */
function turningMs(context: Context, door: string): number {
  const { operations } = context.state
  const behind = devicesBehind(context, door)
  const turning = [...operations.open(), ...operations.unknown().filter(({ why }) => why === 'gave_up')]
  const left = turning
    .filter(({ action, device }) => action === 'dispense' && behind.includes(device))
    .map((operation) => runningMs(context, operation))
  // A new or older journal lacks motions that its controller knows.
  const isUnknown = behind.some((device) => !isUsable(context, device))
  return Math.max(0, ...left, isUnknown ? turningOfFormerMs(context, door) : 0)
}

/** Milliseconds for which a row behind the door may still turn, if nothing is known of the motions before `startedAt`. */
export function turningOfFormerMs(
  { layout, runtime, settings, startedAt }: Pick<Context, 'layout' | 'runtime' | 'settings' | 'startedAt'>,
  door: string,
): number {
  if (devicesBehind({ layout }, door).length === 0) return 0
  return Math.max(0, startedAt + longestMs(settings.maxMs.dispense, settings) - runtime.clock.monotonic())
}

const devicesBehind = ({ layout }: Pick<Context, 'layout'>, door: string): string[] =>
  layout.fridgeDoors.flatMap((behind) =>
    fridgeSides
      .filter((side) => fridgeDoor(behind.fridge, side) === door)
      .map((side) => cabinetDevice(behind[side])),
  )

/** The doors that the command names and that have a lock. */
function doorsOf({ doors }: Context, body: DoorCommand): string[] {
  const named =
    body.name === 'open_main_door'
      ? [MAIN_DOOR]
      : body.name === 'open_fridge'
        ? [fridgeDoor(body.fridge, body.side)]
        : fridgeSides.map((side) => fridgeDoor(body.fridge, side))
  return named.filter((door) => doors.hasLock(door))
}

function hindranceOf(context: Context, body: DoorCommand): CommandReason | undefined {
  const { state, doors } = context
  switch (body.name) {
    case 'open_main_door':
      // A customer with an order must be the only person with access to the goods.
      return state.orders.unfinished().length > 0 ? 'interlock' : undefined
    case 'open_fridge':
      return undefined
    case 'close_fridge': {
      // A bolt that is thrown beside an open door keeps the door open.
      const isOpen = fridgeSides.some((side) => doors.mayBeOpen(fridgeDoor(body.fridge, side)))
      return isOpen ? 'interlock' : undefined
    }
  }
}

const leastClosed = (statuses: readonly DoorStatus[]): DoorStatus =>
  (['open', 'unlocked', 'unknown'] as const).find((status) => statuses.includes(status)) ?? 'locked'

/** The cabinets behind a fridge door that may be open, or can be opened. */
export const cabinetsAjar = ({ layout, doors }: Context): Set<number> =>
  new Set(
    layout.fridgeDoors.flatMap((behind) =>
      fridgeSides.filter((side) => doors.isAjar(fridgeDoor(behind.fridge, side))).map((side) => behind[side]),
    ),
  )

/**
 * Handles a door that opened or closed. The journal stores the last position. A door that was open before a
 * restart, or before its line was unreadable, was not forced since.
 */
export function noteDoorMoved(
  context: Context,
  door: string,
  { isOpen, isForced }: Parameters<DoorEvents['onMoved']>[1],
): void {
  if (isOpen === undefined) return
  const { facts } = context.state
  const known = facts.get('open_doors')
  const others = known.filter((each) => each !== door)
  const wasOpen = others.length < known.length
  if (isOpen && !wasOpen && isForced)
    setAlarm(context, 'door_forced', doorSubject(door), true, 'open while locked')
  if (!isOpen) setAlarm(context, 'door_forced', doorSubject(door), false, '')
  if (isOpen !== wasOpen) facts.set('open_doors', isOpen ? [...others, door] : others)
}
