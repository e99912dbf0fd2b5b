import type { z } from 'zod'
import type { Level, LinesProblem } from '../../protocol/model/hardware.ts'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { DoorHealth } from '../../protocol/model/hub-health.ts'
import { doorsOf, type Door, type DoorOptions } from './door.ts'

export type DoorStatus = z.infer<typeof DoorHealth>['status']

export interface DoorEvents {
  /** The sensor's debounced level has changed. `isOpen` is undefined if the line cannot be read or does not settle. */
  onMoved(door: string, change: { isOpen: boolean | undefined; isForced: boolean }): void
  /** `health` may have changed. */
  onChange(): void
  /** `readings` may have changed. */
  onSeen(): void
  /** A door for which `isAjar` returned true is shut and locked. */
  onShut(): void
  /** `troubles` or `unreadSince` has changed. */
  onTrouble(): void
}

/** The main door and the fridge doors: their locks and sensors on GPIO lines. */
export class Doors {
  readonly #options: DoorOptions
  readonly #events: DoorEvents
  readonly #doors: readonly Door[]
  #reading: Cancel | undefined
  #watches: Cancel[] = []
  #unreadSince: number | undefined
  #isStopped = false

  constructor(options: DoorOptions, events: DoorEvents) {
    this.#options = options
    this.#events = events
    this.#doors = doorsOf(options)
  }

  /** Locks unlocked doors and watches the sensors. A lock that is already locked is not driven. */
  start(): void {
    this.#watches = this.#doors.flatMap((door) =>
      door.sensor === undefined ? [] : [this.#options.gpio.watch(door.sensor, () => this.#onEdge(door))],
    )
    this.reread()
  }

  /** Locks all doors again. */
  stop(): void {
    this.#isStopped = true
    for (const end of this.#watches.splice(0)) end()
    this.#reading?.()
    for (const door of this.#doors) {
      door.nextRead?.()
      door.reserved?.()
      this.#drive(door)
    }
  }

  /** Unlocks for a bounded time (I7). Returns false if there is no such lock, or it cannot be driven. */
  unlock(name: string, forMs: number): boolean {
    const { gpio, clock, settings, checkpoint } = this.#options
    const door = this.#find(name)
    if (door?.lock === undefined) return false
    checkpoint('core.before-unlock')
    if (!gpio.write(door.lock, 1)) return false
    checkpoint('core.after-unlock')
    door.relock?.()
    door.stuckSince = undefined
    door.lockLevel = 1
    door.unlockedAt = clock.monotonic()
    door.reserved?.()
    door.reserved = undefined
    door.relock = clock.after(Math.min(forMs, settings.maxUnlockMs), () => {
      if (!this.#drive(door)) this.reread()
      this.#events.onChange()
    })
    this.#events.onChange()
    return true
  }

  /** Locks at once. Returns false if there is no such lock, or it cannot be driven. */
  lock(name: string): boolean {
    const door = this.#find(name)
    if (!door || !this.#drive(door)) return false
    this.#events.onChange()
    return true
  }

  /** Counts as ajar for this time, or until it is unlocked: a person waits for the row behind it. */
  reserve(name: string, forMs: number): void {
    const door = this.#find(name)
    if (!door) return
    door.reserved?.()
    door.reserved = this.#options.clock.after(forMs, () => {
      door.reserved = undefined
      this.#checkShut(door)
    })
  }

  hasLock(name: string): boolean {
    return this.#find(name)?.lock !== undefined
  }

  /** `unknown` for a door that does not exist. */
  status(name: string): DoorStatus {
    const door = this.#find(name)
    return door ? this.#statusOf(door) : 'unknown'
  }

  health(): z.infer<typeof DoorHealth>[] {
    return this.#doors.map((door) => ({ door: door.name, status: this.#statusOf(door) }))
  }

  /** The raw state of locks and contacts, without debouncing, for a technician who watches them. */
  readings(): z.infer<typeof DoorHealth>[] {
    return this.#doors.map((door) => ({
      door: door.name,
      status: this.#statusOf({ ...door, isOpen: door.contact.newest }),
    }))
  }

  /** By name, whether its contact shows it open. Reads no line. */
  contacts(): { door: string; isOpen: boolean }[] {
    return this.#doors.map(({ name, isOpen }) => ({ door: name, isOpen: isOpen === true }))
  }

  /**
   * Whether the raw or debounced contact shows the door open, or showed it open before it failed. A command
   * must not lock beside a door that may be open.
   */
  mayBeOpen(name: string): boolean {
    const door = this.#find(name)
    return door !== undefined && this.#mayBeOpen(door)
  }

  /**
   * Whether the door may be open, or can be opened. Nothing is dispensed behind it. If it is ajar, `onShut`
   * follows.
   */
  isAjar(name: string): boolean {
    const door = this.#find(name)
    if (!door) return false
    door.isAwaited = this.#isAjar(door)
    return door.isAwaited
  }

  /**
   * Start of the time in which no line can be read, on the monotonic clock; undefined if a line can be read
   * or none exists. The chip is missing, or the process that serves it.
   */
  get unreadSince(): number | undefined {
    return this.#unreadSince
  }

  /** Why no line can be used, if the lines report a reason. */
  get linesProblem(): LinesProblem | undefined {
    return this.#options.gpio.problem?.()
  }

  /** The doors with a failing lock or contact, and why. Empty while no line at all can be read. */
  troubles(): { door: string; why: string }[] {
    if (this.#unreadSince !== undefined) return []
    return this.#doors.flatMap((door) => {
      const why = this.#troubleOf(door)
      return why === undefined ? [] : [{ door: door.name, why }]
    })
  }

  /** Milliseconds until time alone changes `troubles`. */
  troublesInMs(): number | undefined {
    const { clock, settings } = this.#options
    const now = clock.monotonic()
    const waits = this.#doors
      .flatMap(({ stuckSince, blindSince }) => [stuckSince, blindSince])
      .flatMap((since) => (since === undefined ? [] : [since + settings.doorTroubleMs - now]))
      .filter((ms) => ms > 0)
    return waits.length > 0 ? Math.min(...waits) : undefined
  }

  /**
   * Reads every line again, because an edge may have been missed, and locks doors that should be locked.
   * Lines may appear later than the hub (a socket). Unreadable lines are read again after `gpioReadMs`.
   */
  reread(): void {
    this.#reading?.()
    this.#reading = undefined
    for (const door of this.#doors) {
      // An earlier process left the lock unlocked, and only this process can end that (I7).
      if (door.relock === undefined) this.#drive(door)
      if (door.nextRead === undefined) this.#readDoor(door)
    }
    this.#noteUnread()
    if (this.#doors.some((door) => this.#isUnsettled(door)))
      this.#reading = this.#options.clock.after(this.#options.settings.gpioReadMs, () => this.reread())
  }

  #find(name: string): Door | undefined {
    return this.#doors.find((door) => door.name === name)
  }

  #mayBeOpen({ sensor, contact, isOpen, wasOpen }: Door): boolean {
    const isSeenOpen = isOpen === true || contact.newest === true || (isOpen === undefined && wasOpen)
    return isSeenOpen || (sensor !== undefined && this.#options.gpio.read(sensor) === 1)
  }

  #isAjar(door: Door): boolean {
    const { lock, lockLevel, reserved } = door
    const isUnlocked = lock !== undefined && (this.#options.gpio.read(lock) ?? lockLevel) === 1
    return isUnlocked || reserved !== undefined || this.#mayBeOpen(door)
  }

  #checkShut(door: Door): void {
    if (!door.isAwaited || this.#isStopped || this.#isAjar(door)) return
    door.isAwaited = false
    this.#events.onShut()
  }

  #troubleOf({ isUnsettled, stuckSince, blindSince, lockFailures }: Door): string | undefined {
    const { clock, settings } = this.#options
    const now = clock.monotonic()
    const lasts = (since: number | undefined): boolean =>
      since !== undefined && now - since >= settings.doorTroubleMs
    if (lasts(stuckSince)) return lockFailures.failing?.reason ?? 'its lock does not lock'
    if (isUnsettled) return 'its contact does not settle'
    return lasts(blindSince) ? 'its contact cannot be read' : undefined
  }

  #noteUnread(): void {
    const { gpio, clock } = this.#options
    const lines = this.#doors
      .flatMap(({ lock, sensor }) => [lock, sensor])
      .filter((line) => line !== undefined)
    const isUnread = lines.length > 0 && lines.every((line) => gpio.read(line) === undefined)
    if (isUnread === (this.#unreadSince !== undefined)) return
    this.#unreadSince = isUnread ? clock.monotonic() : undefined
    this.#events.onTrouble()
  }

  /** A line cannot be read, or the door is unlocked without a timer that locks it. */
  #isUnsettled({ lock, sensor, relock }: Door): boolean {
    const { gpio } = this.#options
    const isUnread = [lock, sensor].some((line) => line !== undefined && gpio.read(line) === undefined)
    return isUnread || (relock === undefined && lock !== undefined && gpio.read(lock) === 1)
  }

  /** Drives the lock to locked. Returns false if it cannot be driven, or its state is unknown. */
  #drive(door: Door): boolean {
    const { gpio, checkpoint, clock } = this.#options
    door.relock?.()
    door.relock = undefined
    if (door.lock === undefined) return false
    let level = gpio.read(door.lock)
    if (level === 1) {
      door.unlockedAt = clock.monotonic()
      checkpoint('core.before-lock')
      const isDriven = gpio.write(door.lock, 0)
      checkpoint('core.after-lock')
      // A line may accept the write without changing its level.
      level = isDriven ? gpio.read(door.lock) : 1
    }
    this.#noteLock(door, level)
    this.#checkShut(door)
    return level === 0
  }

  #noteLock(door: Door, level: Level | undefined): void {
    const { clock } = this.#options
    door.lockLevel = level ?? door.lockLevel
    if (level === 0) {
      if (door.stuckSince === undefined) return
      door.stuckSince = undefined
      door.lockFailures.succeeded({ door: door.name }, 'the door is locked')
      this.#events.onTrouble()
      return
    }
    const reason = level === 1 ? 'its lock does not lock' : 'its lock cannot be read'
    door.lockFailures.failed(reason, { door: door.name }, 'the door cannot be locked', 'error')
    if (door.stuckSince !== undefined) return
    door.stuckSince = clock.monotonic()
    this.#events.onTrouble()
  }

  /** Edges merge and contacts bounce. Only the level counts, read soon after the first edge. */
  #onEdge(door: Door): void {
    const { clock, settings } = this.#options
    // An edge before the stop may arrive after it.
    if (this.#isStopped) return
    const now = clock.monotonic()
    this.#noteUnlocked(door)
    door.contact.disturb(now)
    door.edgesSince ??= now
    const leftMs = door.edgesSince + settings.doorReadWithinMs - now
    this.#readDoorIn(door, Math.max(1, Math.min(settings.doorDebounceMs, leftMs)))
  }

  /** A contact may show a door shut for a moment while the door stands open: its lock must be locked for longer. */
  #noteUnlocked(door: Door): void {
    const { gpio, clock, settings } = this.#options
    const now = clock.monotonic()
    const level = door.lock === undefined ? 1 : gpio.read(door.lock)
    if (level === 1) door.unlockedAt = now
    const lockedMs = now - (door.unlockedAt ?? -Infinity)
    if (level === 0 && door.contact.newest === false && lockedMs >= settings.sensorHoldMs)
      door.unlockedAt = undefined
  }

  #readDoorIn(door: Door, ms: number): void {
    door.nextRead?.()
    door.nextRead = this.#options.clock.after(ms, () => this.#readDoor(door))
  }

  #readDoor(door: Door): void {
    const { gpio, clock } = this.#options
    door.nextRead = undefined
    door.edgesSince = undefined
    if (door.sensor === undefined) return
    const now = clock.monotonic()
    const level = gpio.read(door.sensor)
    const wasBlind = door.blindSince !== undefined
    this.#noteUnlocked(door)
    const before = door.contact.newest
    if (level === undefined) {
      door.wasOpen ||= before === true
      door.contact.forget()
      door.blindSince ??= now
    } else {
      // A contact that flickers may show a door shut that was open before: the first reading must hold like later ones.
      if (before === undefined && door.wasOpen) door.contact.note(true, now)
      door.contact.note(level === 1, now)
      door.blindSince = undefined
      if (level === 1 && before !== true) door.isForced = door.unlockedAt === undefined
    }
    if (door.contact.newest !== before) this.#events.onSeen()
    const value = door.contact.value(now)
    const waitMs = door.contact.waitMs(now)
    if (waitMs !== undefined) this.#readDoorIn(door, waitMs)
    const isUnsettled = value === 'unsettled'
    const isOpen = isUnsettled ? undefined : value
    const isNews = isUnsettled !== door.isUnsettled || wasBlind !== (door.blindSince !== undefined)
    door.isUnsettled = isUnsettled
    door.wasOpen = isOpen ?? door.wasOpen
    if (isOpen !== door.isOpen) {
      door.isOpen = isOpen
      this.#events.onMoved(door.name, { isOpen, isForced: door.isForced })
      this.#events.onChange()
    }
    if (isNews) this.#events.onTrouble()
    this.#checkShut(door)
  }

  #statusOf(door: Door): DoorStatus {
    if (door.isOpen === true) return 'open'
    if (door.sensor !== undefined && door.isOpen === undefined) return 'unknown'
    if (door.lock === undefined) return door.isOpen === undefined ? 'unknown' : 'locked'
    const level = this.#options.gpio.read(door.lock)
    return level === undefined ? 'unknown' : level === 1 ? 'unlocked' : 'locked'
  }
}
