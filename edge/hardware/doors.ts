import type { z } from 'zod'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { GpioLine, GpioLines } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { DoorHealth } from '../../protocol/mqtt/session.ts'

export type DoorStatus = z.infer<typeof DoorHealth>['status']

export interface DoorOptions {
  gpio: GpioLines
  /** Names of the hub's lines: `<door>_lock` drives a lock (1 unlocks), `<door>_door` reads a sensor (1 is open). */
  lines: readonly string[]
  clock: Clock
  /** `maxUnlockMs`: no door stays unlocked for longer. `doorDebounceMs`: a sensor must hold its level for so long. */
  settings: { maxUnlockMs: number; doorDebounceMs: number }
  checkpoint: Checkpoint
  log: Log
}

export interface DoorEvents {
  /** The sensor's level has changed and held; `isOpen` is undefined where the line cannot be read any more. */
  onMoved(door: string, change: { isOpen: boolean | undefined; isLocked: boolean }): void
  /** What `health` says may have changed. */
  onChange(): void
  /** An unlocked door was locked again when its time had passed. */
  onRelocked(): void
}

interface Door {
  name: string
  lock: string | undefined
  sensor: string | undefined
  isOpen: boolean | undefined
  relock: Cancel | undefined
  debounce: Cancel | undefined
}

const REREAD_MS = 1000

/** The main door and the fridges' doors: their locks and sensors on GPIO lines. */
export class Doors {
  readonly #options: DoorOptions
  readonly #events: DoorEvents
  readonly #doors: readonly Door[]
  #reading: Cancel | undefined

  constructor(options: DoorOptions, events: DoorEvents) {
    this.#options = options
    this.#events = events
    this.#doors = doorsOf(options.lines)
  }

  /** Locks what is unlocked (nothing else is driven: a lock that is locked stays untouched), watches the sensors. */
  start(): void {
    for (const door of this.#doors)
      if (door.sensor !== undefined) this.#options.gpio.watch(door.sensor, () => this.#onEdge(door))
    this.reread()
  }

  /** Locks everything again. */
  stop(): void {
    this.#reading?.()
    for (const door of this.#doors) {
      door.debounce?.()
      this.#drive(door)
    }
  }

  /** Unlocks for a bounded time (I7). False where there is no such lock, or it cannot be driven. */
  unlock(name: string, forMs: number): boolean {
    const { gpio, clock, settings, checkpoint } = this.#options
    const door = this.#find(name)
    if (door?.lock === undefined) return false
    checkpoint('core.before-unlock')
    if (!gpio.write(door.lock, 1)) return false
    checkpoint('core.after-unlock')
    door.relock?.()
    door.relock = clock.after(Math.min(forMs, settings.maxUnlockMs), () => {
      this.#drive(door)
      this.#events.onChange()
      this.#events.onRelocked()
    })
    this.#events.onChange()
    return true
  }

  /** Locks at once. False where there is no such lock, or it cannot be driven. */
  lock(name: string): boolean {
    const door = this.#find(name)
    if (!door || !this.#drive(door)) return false
    this.#events.onChange()
    return true
  }

  hasLock(name: string): boolean {
    return this.#find(name)?.lock !== undefined
  }

  /** `unknown` for a door that there is not. */
  status(name: string): DoorStatus {
    const door = this.#find(name)
    return door ? this.#statusOf(door) : 'unknown'
  }

  health(): z.infer<typeof DoorHealth>[] {
    return this.#doors.map((door) => ({ door: door.name, status: this.#statusOf(door) }))
  }

  /** Whether there are lines and none can be read: their chip is missing, or what serves it. */
  get areUnread(): boolean {
    const lines = this.#doors
      .flatMap(({ lock, sensor }) => [lock, sensor])
      .filter((line) => line !== undefined)
    return lines.length > 0 && lines.every((line) => this.#options.gpio.read(line) === undefined)
  }

  /**
   * Reads every line again (an edge may have been missed), and locks what should be locked. Lines may come later than
   * the hub (a socket): what cannot be read yet is read again soon.
   */
  reread(): void {
    this.#reading?.()
    this.#reading = undefined
    for (const door of this.#doors) {
      // An earlier life left it unlocked, and nobody else would end that (I7).
      if (door.relock === undefined) this.#drive(door)
      this.#look(door)
    }
    if (this.#doors.some((door) => this.#isUnsettled(door)))
      this.#reading = this.#options.clock.after(REREAD_MS, () => this.reread())
  }

  #find(name: string): Door | undefined {
    return this.#doors.find((door) => door.name === name)
  }

  /** A line cannot be read, or the door is unlocked with no time set for locking it. */
  #isUnsettled({ lock, sensor, relock }: Door): boolean {
    const { gpio } = this.#options
    const isUnread = [lock, sensor].some((line) => line !== undefined && gpio.read(line) === undefined)
    return isUnread || (relock === undefined && lock !== undefined && gpio.read(lock) === 1)
  }

  /** Drives the lock to locked. False where it cannot be driven, or nobody knows whether it is locked. */
  #drive(door: Door): boolean {
    const { gpio, checkpoint, log } = this.#options
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
  #onEdge(door: Door): void {
    const { clock, settings } = this.#options
    door.debounce?.()
    door.debounce = clock.after(settings.doorDebounceMs, () => this.#look(door))
  }

  #look(door: Door): void {
    const { gpio } = this.#options
    door.debounce = undefined
    if (door.sensor === undefined) return
    const level = gpio.read(door.sensor)
    const isOpen = level === undefined ? undefined : level === 1
    if (isOpen === door.isOpen) return
    door.isOpen = isOpen
    const isLocked = door.lock !== undefined && gpio.read(door.lock) === 0
    this.#events.onMoved(door.name, { isOpen, isLocked })
    this.#events.onChange()
  }

  #statusOf(door: Door): DoorStatus {
    if (door.isOpen === true) return 'open'
    if (door.lock === undefined) return door.isOpen === undefined ? 'unknown' : 'locked'
    const level = this.#options.gpio.read(door.lock)
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
    debounce: undefined,
  }))
}

/**
 * Locks what an earlier life left unlocked (I7), before anything that could keep this one from starting: a pin keeps its
 * level when the process that drove it dies. A lock that is locked stays untouched. Lines that cannot be driven yet are
 * left to `Doors`, which reads them again.
 */
export function lockAll(gpio: GpioLines, lines: readonly GpioLine[], log: Log): void {
  for (const { name } of lines) {
    if (!name.endsWith('_lock') || gpio.read(name) === 0) continue
    if (gpio.write(name, 0)) log.warn({ line: name }, 'a lock was left unlocked: it is locked')
  }
}
