import type { Clock } from '../../protocol/model/runtime.ts'
import type { DeviceEvent } from '../hardware/controller-events.ts'
import { Steady, type SteadyRules } from '../hardware/steady.ts'
import { fridgeDevice, numberOf, type Layout } from './layout.ts'
import type { CoreSettings } from '../../protocol/settings/hub-limits.ts'
import { newThermometer, takeReport, type Thermometer } from './thermometer.ts'

export type Door = 'closed' | 'open' | 'moving' | 'unknown'
export type Lift = 'up' | 'down' | 'moving' | 'unknown'

export interface BinState {
  /** Debounced values for reports (`steady.ts`). Decisions about motions use the raw values. */
  steady: { door: Steady<Door>; occupied: Steady<boolean> }
  door: Door
  lift: Lift
  occupied: boolean | undefined
  /** The bin has reported its position since its controller connected. */
  hasReported: boolean
  /** The operation id of the last motion that was sent to it since then. */
  sent: string | undefined
  /** On the monotonic clock: start of the time without a known position of door or lift. */
  unsureSince: number | undefined
  /** Its door or lift has reported a motion since `sent`. */
  hasMoved: boolean
  /** On the monotonic clock: start of the current uninterrupted emptiness. */
  emptySince: number | undefined
}

/** Instants on the monotonic clock. */
export interface FridgeState {
  meter: Thermometer
  /** The extremes of plausible readings since the last report. */
  min: number | undefined
  max: number | undefined
  /** When this process started to watch the fridge. */
  watchedSince: number | undefined
  /** When readings of this process, or a person, last proved that the fridge was cold. */
  provenAt: number | undefined
  /** Why there is no valid reading. It stays set until readings prove a temperature again. */
  unreadable: string | undefined
  /** The hub sells nothing from the fridge until its first readings prove that it is cold. */
  isUnproven: boolean
  /** When one of its doors opened, if one is open; and when a door was last open for long. */
  openSince: number | undefined
  openedAt: number | undefined
  /**
   * Whether the journal contains the current proof: `never` in this process; `before` the last housekeeping;
   * `lately`.
   */
  noted: 'never' | 'before' | 'lately'
  /** An earlier process journaled the last proof, and the fridge has not been proven cold since. */
  isInherited: boolean
  /** The journal with the last proof was lost while this process ran: the first reading decides. */
  isLost: boolean
  /** The suspensions of the process until the readings of `meter`. */
  suspensions: number
  /** When this process judged that the fridge must be shut off, in cloud time. The storage may have failed then. */
  shutoffAt: number | undefined
  /** The value in degrees Celsius that the probe repeated for hours in an earlier process: its alarm is still open. */
  frozenAt: number | undefined
}

/**
 * A foreign controller: a board on one of the hub's lines that is not its own (serial SPEC §8). The hub sends
 * it no query and ignores its device reports.
 */
export interface OtherBoard {
  /**
   * True for a board of another hub or line, or a new board on a line that has its own board: only a person
   * may assign it to this hub. Otherwise the hub takes it over automatically.
   */
  isForeign: boolean
  /** The devices that have reported on its line since it connected. */
  reported: Set<string>
}

type DeviceSettings = Pick<
  CoreSettings,
  'steadyMs' | 'probe' | 'fridgeUnreadableMs' | 'fridgeUnreadableOldMs' | keyof SteadyRules
>

/** Firmware before this version of the serial protocol reports a temperature only when it changes. */
const REPEATING_VERSION = 3

/** The reports of the devices, in memory only: controllers repeat them on every connection. */
export class Devices {
  readonly #layout: Layout
  readonly #clock: Clock
  readonly #settings: DeviceSettings
  readonly #memories = new Map<string, string>()
  /** By controller: the version of the serial protocol that it used last. */
  readonly #versions = new Map<string, number>()
  readonly #met = new Set<string>()
  readonly #downSince: Map<string, number>
  readonly #cameBack = new Map<string, { at: number; downSince: number }>()
  readonly #bins: Map<number, BinState>
  readonly #fridges: Map<number, FridgeState>
  readonly #rests = new Map<string, { operationId: string; until: number; failures: number }>()

  constructor(layout: Layout, clock: Clock, settings: DeviceSettings) {
    this.#layout = layout
    this.#clock = clock
    this.#settings = settings
    this.#downSince = new Map(layout.controllers.map((controller) => [controller, clock.monotonic()]))
    this.#bins = new Map(layout.bins.map((bin) => [bin.number, unknownBin(settings)]))
    this.#fridges = new Map(layout.fridges.map((fridge) => [fridge.number, unknownFridge()]))
  }

  up(controller: string, memoryId: string, protocol: number): void {
    this.#forget(controller)
    this.#versions.set(controller, protocol)
    this.#memories.set(controller, memoryId)
    this.#met.add(controller)
    this.#answers(controller)
  }

  /**
   * The journal could not store the controller's identity: the controller is not up. It is not met either,
   * unless it was met before.
   */
  turnAway(controller: string, wasMet: boolean): void {
    this.#forget(controller)
    this.#memories.delete(controller)
    if (!wasMet) this.#met.delete(controller)
  }

  /** The controller answers, but must not be used. */
  hold(controller: string): void {
    this.#forget(controller)
    this.#memories.delete(controller)
    this.#answers(controller)
  }

  down(controller: string): void {
    this.#forget(controller)
    this.#memories.delete(controller)
    if (this.#downSince.has(controller)) return
    const now = this.#clock.monotonic()
    const back = this.#cameBack.get(controller)
    const isSame = back !== undefined && now - back.at < this.#settings.steadyMs
    this.#downSince.set(controller, isSame ? back.downSince : now)
  }

  isUp(controller: string): boolean {
    return this.#memories.has(controller)
  }

  /** The controller was up at least once since this start of the hub. */
  isMet(controller: string): boolean {
    return this.#met.has(controller)
  }

  /**
   * Start of the controller's absence on the monotonic clock. A return shorter than `steadyMs` does not end
   * the absence.
   */
  awaySince(controller: string): number | undefined {
    const since = this.#downSince.get(controller)
    const back = this.#cameBack.get(controller)
    if (since !== undefined || back === undefined) return since
    return this.#clock.monotonic() - back.at < this.#settings.steadyMs ? back.downSince : undefined
  }

  /** The controller does not answer now. */
  isAway(controller: string): boolean {
    return this.#downSince.has(controller)
  }

  /** Milliseconds until a returned controller has stayed for `steadyMs`; undefined if it has not returned. */
  steadyInMs(controller: string): number | undefined {
    const back = this.#cameBack.get(controller)
    return back && back.at + this.#settings.steadyMs - this.#clock.monotonic()
  }

  reportsOnlyChanges(controller: string): boolean {
    return (this.#versions.get(controller) ?? REPEATING_VERSION) < REPEATING_VERSION
  }

  memoryOf(controller: string): string | undefined {
    return this.#memories.get(controller)
  }

  bin(number: number): BinState {
    return this.#bins.get(number) ?? unknownBin(this.#settings)
  }

  fridge(number: number): FridgeState {
    return this.#fridges.get(number) ?? unknownFridge()
  }

  /** Notes the operation that was sent to the device. */
  sent(device: string, operationId: string): void {
    const bin = this.#binOf(device)
    if (bin) Object.assign(bin, { sent: operationId, hasMoved: false })
  }

  /** `isMoved`: an operation moves the device or drops a unit into it, so a change needs no debouncing. */
  note(event: DeviceEvent, isMoved: boolean): void {
    const bin = this.#binOf(event.device)
    if (bin) this.#noteBin(bin, event, isMoved)
    const number = numberOf('fridge', event.device) ?? 0
    const fridge = this.#fridges.get(number)
    if (fridge && event.celsius !== undefined) this.#noteReading(number, fridge, event.celsius)
  }

  /**
   * Lets a device rest after a failed operation. The rest doubles with each further consecutive failure, up to `maxMs`. A
   * result that its controller repeats, because the disk is full, is one failure.
   */
  rest(device: string, operationId: string, { firstMs, maxMs }: { firstMs: number; maxMs: number }): void {
    const last = this.#rests.get(device)
    if (last?.operationId === operationId) return
    const failures = (last?.failures ?? 0) + 1
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20))
    this.#rests.set(device, { operationId, until: this.#clock.monotonic() + ms, failures })
  }

  endRest(device: string): void {
    this.#rests.delete(device)
  }

  restMs(device: string): number {
    return Math.max(0, (this.#rests.get(device)?.until ?? 0) - this.#clock.monotonic())
  }

  #binOf(device: string): BinState | undefined {
    return this.#bins.get(numberOf('bin', device) ?? 0)
  }

  #noteBin(bin: BinState, { door, lift, occupied }: DeviceEvent, isMoved: boolean): void {
    const now = this.#clock.monotonic()
    const isMotion = isMoved || door === 'moving' || bin.door === 'moving'
    if (door !== undefined) bin.steady.door.note(door, now, isMotion)
    // People put items into an open bin and take them out. In a closed bin only a dispense changes the
    // content.
    if (occupied !== undefined)
      bin.steady.occupied.note(occupied, now, isMoved || (door ?? bin.door) !== 'closed')
    bin.hasMoved ||= door === 'moving' || lift === 'moving'
    bin.door = door ?? bin.door
    bin.lift = lift ?? bin.lift
    bin.hasReported ||= door !== undefined
    const isUnsure = bin.door === 'unknown' || bin.lift === 'unknown'
    bin.unsureSince = isUnsure ? (bin.unsureSince ?? now) : undefined
    if (occupied === undefined) return
    bin.emptySince = occupied ? undefined : (bin.emptySince ?? now)
    bin.occupied = occupied
  }

  #noteReading(number: number, fridge: FridgeState, celsius: number | null): void {
    const settings = this.#settings
    const onlyChanges = this.reportsOnlyChanges(this.#layout.controllerOf(fridgeDevice(number)) ?? '')
    const maxAgeMs = onlyChanges ? settings.fridgeUnreadableOldMs : settings.fridgeUnreadableMs
    const { limitCelsius } = this.#layout.fridges.find((one) => one.number === number)!
    const before = fridge.meter.last
    const report = { celsius, at: this.#clock.monotonic() }
    fridge.meter = takeReport(fridge.meter, report, { limitCelsius, maxAgeMs }, settings.probe)
    const { last } = fridge.meter
    if (last === undefined || last === before) return
    fridge.min = Math.min(fridge.min ?? last.celsius, last.celsius)
    fridge.max = Math.max(fridge.max ?? last.celsius, last.celsius)
  }

  #answers(controller: string): void {
    const since = this.#downSince.get(controller)
    if (since !== undefined) this.#cameBack.set(controller, { at: this.#clock.monotonic(), downSince: since })
    this.#downSince.delete(controller)
  }

  #forget(controller: string): void {
    for (const device of this.#layout.devicesOf(controller)) {
      const bin = this.#binOf(device)
      if (bin) Object.assign(bin, unknownBin(this.#settings))
    }
  }
}

const unknownBin = (rules: SteadyRules): BinState => ({
  steady: { door: new Steady(rules), occupied: new Steady(rules) },
  door: 'unknown',
  lift: 'unknown',
  hasReported: false,
  sent: undefined,
  hasMoved: false,
  unsureSince: undefined,
  occupied: undefined,
  emptySince: undefined,
})
export const unknownFridge = (): FridgeState => ({
  meter: newThermometer,
  min: undefined,
  max: undefined,
  watchedSince: undefined,
  provenAt: undefined,
  unreadable: undefined,
  isUnproven: false,
  openSince: undefined,
  openedAt: undefined,
  noted: 'never',
  isInherited: false,
  isLost: false,
  suspensions: 0,
  shutoffAt: undefined,
  frozenAt: undefined,
})
