import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { GpioLines, Level } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import { Steady, type SteadyRules } from './steady.ts'

export interface DoorOptions {
  gpio: GpioLines
  /** Names of the hub's lines. `<door>_lock` drives a lock (1 unlocks); `<door>_door` reads a sensor (1 is open). */
  lines: readonly string[]
  /** The doors that the journal knows as open. */
  openBefore: readonly string[]
  clock: Clock
  settings: DoorSettings
  checkpoint: Checkpoint
  log: Log
}

/** Milliseconds. */
export interface DoorSettings extends SteadyRules {
  /** The maximum time that a door stays unlocked. */
  maxUnlockMs: number
  /** A contact is read after it has been quiet for this time, */
  doorDebounceMs: number
  /** but at the latest this time after its first edge. */
  doorReadWithinMs: number
  /** Unreadable lines are read again after this time. */
  gpioReadMs: number
  /** A lock or contact that fails for this time raises an alarm. */
  doorTroubleMs: number
}

/** A door with its lock and contact. Instants are on the monotonic clock. */
export interface Door {
  name: string
  lock: string | undefined
  sensor: string | undefined
  contact: Steady<boolean>
  isOpen: boolean | undefined
  /** Its contact showed it open before it became unreadable or unsettled. */
  wasOpen: boolean
  /** The lock's last level that was read or driven. */
  lockLevel: Level | undefined
  /** The last time at which it was not locked, until its contact shows it shut again. */
  unlockedAt: number | undefined
  /** When its contact last changed to open, it had been locked since the contact showed it shut. */
  isForced: boolean
  relock: Cancel | undefined
  /** A person waits for the row behind it. */
  reserved: Cancel | undefined
  /** Something waits until it is shut and locked. */
  isAwaited: boolean
  /** The next read of the contact: after an edge, or when its value has held. */
  nextRead: Cancel | undefined
  edgesSince: number | undefined
  /** Start of the time in which the lock should be locked but is not, or cannot be read. */
  stuckSince: number | undefined
  /** Start of the time in which the contact cannot be read. */
  blindSince: number | undefined
  isUnsettled: boolean
  lockFailures: RepeatedLine
}

export function doorsOf({ lines, openBefore, settings, log, clock }: DoorOptions): Door[] {
  const names = [...new Set(lines.map((line) => line.replace(/_(lock|door)$/, '')))]
  return names.map((name) => {
    const sensor = lines.find((line) => line === `${name}_door`)
    return {
      name,
      lock: lines.find((line) => line === `${name}_lock`),
      sensor,
      contact: new Steady<boolean>(settings),
      isOpen: undefined,
      wasOpen: sensor !== undefined && openBefore.includes(name),
      lockLevel: undefined,
      unlockedAt: undefined,
      isForced: false,
      relock: undefined,
      reserved: undefined,
      isAwaited: false,
      nextRead: undefined,
      edgesSince: undefined,
      stuckSince: undefined,
      blindSince: undefined,
      isUnsettled: false,
      lockFailures: new RepeatedLine({ log, clock }),
    }
  })
}
