import type { z } from 'zod'
import type { Cancel } from '../../../protocol/model/runtime.ts'
import type { DoorHealth } from '../../../protocol/mqtt/session.ts'
import { setAlarm } from '../alarm-reports.ts'
import type { Context } from '../context.ts'

export type DoorStatus = z.infer<typeof DoorHealth>['status']

/** The main door and the fridges' doors: their locks and sensors on GPIO lines. */
export interface Doors {
  /** Locks what is unlocked (nothing else is driven: a lock that is locked stays untouched), watches the sensors. */
  start(): void
  /** Locks everything again. */
  stop(): void
  /** Unlocks for a bounded time. False where there is no such lock, or it cannot be driven. */
  unlock(door: string, forMs: number): boolean
  /** Locks at once. False where there is no such lock, or it cannot be driven. */
  lock(door: string): boolean
  hasLock(door: string): boolean
  /** `unknown` for a door that there is not. */
  status(door: string): DoorStatus
  health(): z.infer<typeof DoorHealth>[]
  /** Reads every line again (an edge may have been missed), and locks what should be locked. */
  reread(): void
}

interface Door {
  name: string
  lock: string | undefined
  sensor: string | undefined
  isOpen: boolean | undefined
  relock: Cancel | undefined
  settle: Cancel | undefined
}

const REREAD_MS = 1000

export function createDoors(context: Omit<Context, 'doors'>, onChange: () => void): Doors {
  const { gpio, hardware, runtime, settings, checkpoint, log } = context
  let reading: Cancel | undefined
  const doors = doorsOf(hardware.gpio.lines.map((line) => line.name))

  /** False where it cannot be driven, or nobody knows whether it is locked. */
  function lock(door: Door): boolean {
    door.relock?.()
    door.relock = undefined
    const level = door.lock === undefined ? undefined : gpio.read(door.lock)
    if (door.lock === undefined || level !== 1) return level === 0
    checkpoint('core.before-lock')
    const driven = gpio.write(door.lock, 0)
    if (!driven) log.error({ door: door.name }, 'the door cannot be locked')
    checkpoint('core.after-lock')
    return driven
  }

  /** Edges merge and contacts bounce: what counts is the level once it has held. */
  function onEdge(door: Door): void {
    door.settle?.()
    door.settle = runtime.clock.after(settings.doorDebounceMs, () => look(door))
  }

  function look(door: Door): void {
    door.settle = undefined
    if (door.sensor === undefined) return
    const level = gpio.read(door.sensor)
    const isOpen = level === undefined ? undefined : level === 1
    if (isOpen === door.isOpen) return
    const wasClosed = door.isOpen !== true
    door.isOpen = isOpen
    const isLocked = door.lock !== undefined && gpio.read(door.lock) === 0
    context.turn(() => {
      if (isOpen === true && wasClosed && isLocked)
        setAlarm(context, 'door_forced', door.name, true, 'open while locked')
      if (isOpen === false) setAlarm(context, 'door_forced', door.name, false, '')
    })
    onChange()
  }

  /** Lines may come later than the hub (a socket): what cannot be read yet is read again soon. */
  function reread(): void {
    reading?.()
    reading = undefined
    for (const door of doors) {
      // Left unlocked by an earlier life, which nobody else would end (I7).
      if (door.relock === undefined) lock(door)
      look(door)
    }
    const isOdd = (door: Door): boolean =>
      [door.lock, door.sensor].some((line) => line !== undefined && gpio.read(line) === undefined) ||
      (door.relock === undefined && door.lock !== undefined && gpio.read(door.lock) === 1)
    if (doors.some(isOdd)) reading = runtime.clock.after(REREAD_MS, reread)
  }

  return {
    start() {
      for (const door of doors) if (door.sensor !== undefined) gpio.watch(door.sensor, () => onEdge(door))
      reread()
    },
    stop() {
      reading?.()
      for (const door of doors) {
        door.settle?.()
        lock(door)
      }
    },
    unlock(name, forMs) {
      const door = doors.find((each) => each.name === name)
      if (door?.lock === undefined) return false
      checkpoint('core.before-unlock')
      if (!gpio.write(door.lock, 1)) return false
      checkpoint('core.after-unlock')
      door.relock?.()
      door.relock = runtime.clock.after(Math.min(forMs, settings.maxUnlockMs), () => {
        lock(door)
        onChange()
        // What waits for the door to be locked goes on.
        context.turn(() => {})
      })
      onChange()
      return true
    },
    lock(name) {
      const door = doors.find((each) => each.name === name)
      if (!door || !lock(door)) return false
      onChange()
      return true
    },
    hasLock: (name) => doors.some((door) => door.name === name && door.lock !== undefined),
    status(name) {
      const door = doors.find((each) => each.name === name)
      return door ? statusOf(door) : 'unknown'
    },
    health: () => doors.map((door) => ({ door: door.name, status: statusOf(door) })),
    reread,
  }

  function statusOf(door: Door): DoorStatus {
    if (door.isOpen === true) return 'open'
    if (door.lock === undefined) return door.isOpen === undefined ? 'unknown' : 'locked'
    const level = gpio.read(door.lock)
    return level === undefined ? 'unknown' : level === 1 ? 'unlocked' : 'locked'
  }
}

function doorsOf(lines: readonly string[]): Door[] {
  const names = [...new Set(lines.map((line) => line.replace(/_(lock|door)$/, '')))]
  return names.map((name) => ({
    name,
    lock: lines.find((line) => line === `${name}_lock`),
    sensor: lines.find((line) => line === `${name}_door`),
    isOpen: undefined,
    relock: undefined,
    settle: undefined,
  }))
}
