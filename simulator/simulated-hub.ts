import { rowSubject } from '../protocol/model/subject.ts'
import {
  deviceId,
  type ControllerDescription,
  type DeviceDescription,
  type HardwareDescription,
} from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Clock, Random, Runtime } from '../protocol/model/runtime.ts'
import type { OpenLinePort } from '../protocol/serial/line-port.ts'
import { Controller } from './board/controller.ts'
import type { FaultTarget, FaultType } from './faults/fault-types.ts'
import { Faults, type FaultMap, type FaultRequest, seededRandom } from './faults/faults.ts'
import { crossed, lineFilter } from './faults/line-faults.ts'
import { startProgram } from './firmware/firmware.ts'
import { usedMemory } from './firmware/operation-memory.ts'
import type { HubState } from './hub-state.ts'
import { createWire, mountInProcess, type WatchedWire } from './mounts/wire.ts'
import { createGpioBank, type GpioBank } from './physics/gpio-bank.ts'
import { defaultTiming, type Timing } from './physics/motion.ts'
import { act, type PersonAction, type ActionResult, createWorld, type World } from './physics/world.ts'
import { type Act, doorNames, type LoadedRow, type WorldRecord } from './physics/world-state.ts'
import type { SimulatorStorage } from './storage/append-log.ts'

export interface SimulatedHubOptions {
  hardware: HardwareDescription
  /** The world's runtime: its clock continues while the hub has no power. */
  runtime: Runtime
  /** Outlives this object. A new object with the same storage is a hub after a power failure. */
  storage: SimulatorStorage
  log: Log
  /** Randomness of faults and falls, if they must be reproducible apart from everything else. Default: the runtime's. */
  chance?: Random | undefined
  timing?: Partial<Timing>
  /** How long the firmware waits for a fall after a turn (SPEC §6). */
  dropWindowMs?: number
  /** How many times slower the firmware repeats itself without news, and ends silent sessions. For simulations of days. */
  pace?: number | undefined
  /** Latency of a line in the in-process mount; called for each line. */
  lineLatencyMs?: () => number
  /** Controllers that run an external program as firmware (`board/SPEC.md`). */
  openBoards?: ReadonlySet<string> | undefined
  /** By controller: the version of the serial protocol of its firmware; none = the newest. */
  versions?: ReadonlyMap<string, number> | undefined
  /** Initial contents of the shelves; none = full. */
  loaded?: LoadedRow[] | undefined
}

/** A person presses a controller's reset button. */
export type Press = { action: 'press'; target: string }

const BROWN_OUT_MS = 1000
const RESET_MS = 100
const BLINK_MS = 250
const DROP_WINDOW_MS = 1000

/** A hub's hardware in software. Powered when it is created. */
export class SimulatedHub {
  readonly hardware: HardwareDescription
  readonly gpio: GpioBank
  readonly world: World
  readonly faults: Faults
  /** The serial lines, in-process; `path` is a controller's `port` or its id. */
  readonly openPort: OpenLinePort
  readonly #options: SimulatedHubOptions
  readonly #clock: Clock
  #random: Random
  /** Reads the present source: `reseed` replaces it. */
  readonly #chance: Random = {
    fraction: () => this.#random.fraction(),
    bytes: (count) => this.#random.bytes(count),
  }
  readonly #targets: FaultTargets
  readonly #controllers = new Map<string, Controller>()
  readonly #wires: WatchedWire[] = []
  readonly #transmitters = new Map<string, (line: string) => void>()
  readonly #strikes = (type: FaultType, target: string): boolean => this.faults.strikes(type, target)
  #mainsOn = true
  #stopped = false

  constructor(options: SimulatedHubOptions) {
    const { hardware, runtime, storage } = options
    this.#options = options
    this.hardware = hardware
    this.#clock = runtime.clock
    this.#random = options.chance ?? runtime.random
    this.gpio = createGpioBank(hardware.gpio.lines)
    this.#targets = new FaultTargets(hardware)
    this.faults = new Faults({ clock: this.#clock, random: this.#chance }, this.#targets, {
      onInstant: (request) => this.#strike(request),
      onRewired: () => this.world.rewired(),
      onRaised: (request) => this.#raised(request),
    })
    this.world = createWorld({
      hardware,
      runtime: { clock: this.#clock, random: this.#chance },
      gpio: this.gpio,
      log: storage.open<WorldRecord>('world'),
      timing: { ...defaultTiming, ...options.timing },
      loaded: options.loaded,
      strikes: this.#strikes,
      onMotion: (device, durationMs) => this.#moving(device, durationMs),
    })
    for (const description of hardware.controllers) this.#connect(description)
    this.#restorePower([...this.#controllers.keys()])
    this.openPort = mountInProcess(this.#wires, {
      clock: this.#clock,
      latencyMs: options.lineLatencyMs ?? (() => 1),
    })
  }

  get controllers(): ReadonlyMap<string, Controller> {
    return this.#controllers
  }

  /** The ends of the serial lines, for the mounts. */
  get wires(): readonly WatchedWire[] {
    return this.#wires
  }

  /** The physical acts with `n` greater than `after`. */
  actuations(after?: number): Act[] {
    return this.world.chronicle.acts(after)
  }

  act(wanted: PersonAction | Press): ActionResult {
    return wanted.action === 'press' ? this.#press(wanted.target) : act(this.world, wanted)
  }

  /** Power of the whole hub's electronics, or of one controller; `forMs`: it returns automatically after this time. */
  power(state: 'on' | 'off', controllerId?: string, forMs?: number): void {
    const ids = controllerId === undefined ? [...this.#controllers.keys()] : [controllerId]
    if (controllerId === undefined) this.#mainsOn = state === 'on' || forMs !== undefined
    if (state === 'on') this.#restorePower(ids)
    else this.#cutPower(ids, forMs)
    // Without power every lock is locked (I7).
    if (state === 'off' && controllerId === undefined)
      for (const { name, direction } of this.hardware.gpio.lines)
        if (direction === 'out') this.gpio.set(name, 0)
  }

  state(): HubState {
    return describeState({
      hardware: this.hardware,
      world: this.world,
      gpio: this.gpio,
      controllers: this.controllers,
      faults: this.faults,
      clock: this.#clock,
    })
  }

  /** Random events from now on are the same for the same seed. */
  reseed(seed: number): void {
    this.#random = seededRandom(seed)
  }

  /** Switches everything off finally, as the end of the process does. */
  stop(): void {
    this.#stopped = true
    this.#cutPower([...this.#controllers.keys()])
  }

  /** Connects a controller to its serial line. */
  #connect(description: ControllerDescription): void {
    const { storage, runtime, openBoards, versions, pace, dropWindowMs = DROP_WINDOW_MS } = this.#options
    const { id, port } = description
    const lines = this.hardware.controllers.map((controller) => controller.id)
    const { wire, fromController } = createWire(
      id,
      port,
      () => this.#controllers.get(this.#crossed(lines)[lines.indexOf(id)]!)!,
      {
        toHub: lineFilter(this.faults, id, this.#chance, 'to_hub'),
        toController: lineFilter(this.faults, id, this.#chance, 'to_controller'),
      },
    )
    this.#wires.push(wire)
    this.#transmitters.set(id, fromController)
    const controller = new Controller({
      description,
      world: this.world,
      memory: storage.open<object>(`memory-${id}`),
      start: openBoards?.has(id) ? undefined : (ask) => startProgram(ask, runtime, versions?.get(id), pace),
      strikes: this.#strikes,
      dropWindowMs,
      reset: () => this.#cutPower([id], RESET_MS),
      transmit: (line) => this.#transmitters.get(lines[this.#crossed(lines).indexOf(id)]!)!(line),
    })
    this.#controllers.set(id, controller)
  }

  /** The controller at the end of each line, while cables may be crossed. */
  #crossed(lines: readonly string[]): string[] {
    const crossings = this.faults
      .active()
      .flatMap(({ type, target }) => (type === 'crossed_cable' ? [target!] : []))
    return crossed(lines, crossings)
  }

  #moving(device: string, durationMs: number): void {
    const owner = this.#targets.controllerOf(device)
    if (owner !== undefined && this.faults.strikes('brown_out_in_motion', device))
      this.#clock.after(this.#chance.fraction() * durationMs, () => this.#cutPower([owner], BROWN_OUT_MS))
  }

  #cutPower(ids: readonly string[], forMs?: number): void {
    for (const id of ids) this.#controllers.get(id)?.powerOff()
    if (forMs !== undefined)
      this.#clock.after(forMs, () => {
        if (this.#mainsOn && !this.#stopped) this.#restorePower(ids)
      })
  }

  #restorePower(ids: readonly string[]): void {
    for (const id of ids) this.#controllers.get(id)?.powerOn()
  }

  #raised({ type, target }: FaultRequest): void {
    if (type !== 'blinking_contact') return
    const all = [...this.world.bins.keys(), ...this.world.doors.names]
    for (const each of target === undefined ? all : [target]) this.#blink(each)
  }

  /** Executes the faults that happen when they are raised. */
  #strike({ type, target, for_ms = BROWN_OUT_MS }: FaultRequest): void {
    const owner = target === undefined ? undefined : this.#targets.controllerOf(target)
    const hit = owner === undefined ? [...this.#controllers.keys()] : [owner]
    if (type === 'door_forced') {
      const bin = this.world.bins.get(target!)
      if (bin) bin.forceDoor('open', 'force_open')
      else this.world.doors.move(target!, 'open', 'force_open')
      return
    }
    this.#cutPower(hit, for_ms)
    if (type !== 'memory_loss' && type !== 'used_board') return
    for (const id of hit) {
      const controller = this.#controllers.get(id)!
      const isUsed = type === 'used_board'
      // A hub id that no hub here has: two rooms of one world may have crossed cables.
      const elsewhere = this.hardware.hubId + 1_000_000
      controller.replaceMemory(
        isUsed ? usedMemory(controller.description, elsewhere, this.#options.runtime) : [],
      )
    }
  }

  /** Toggles the contact until its fault is over. */
  #blink(target: string): void {
    let isWrong = false
    const toggle = (): void => {
      if (this.#stopped) return
      const isOn = this.faults.strikes('blinking_contact', target)
      isWrong = isOn && !isWrong
      const bin = this.world.bins.get(target)
      if (bin) bin.flicker(isWrong)
      else this.world.doors.flicker(target, isWrong)
      if (isOn) this.#clock.after(BLINK_MS, toggle)
    }
    toggle()
  }

  #press(target: string): ActionResult {
    const id = this.#targets.controllerOf(target)
    if (id === undefined)
      return { ok: false, reason: `press needs a controller: ${[...this.#controllers.keys()].join(', ')}` }
    this.#cutPower([id], RESET_MS)
    return { ok: true, detail: { controller: id, pressed: 'reset' } }
  }
}

/** The targets of faults at one hub, and the controller of each; a controller's own id for itself. */
class FaultTargets implements FaultMap {
  readonly #kinds = new Map<string, FaultTarget[]>()
  readonly #controllers = new Map<string, string>()
  readonly #cabinets = new Map<string, string>()

  constructor(hardware: HardwareDescription) {
    for (const controller of hardware.controllers) {
      this.#kinds.set(controller.id, ['controller'])
      this.#controllers.set(controller.id, controller.id)
      for (const device of controller.devices) this.#add(device, controller.id)
    }
    for (const name of doorNames(hardware)) this.#kinds.set(name, [...this.kindsOf(name), 'door'])
  }

  #add(device: DeviceDescription, controller: string): void {
    const id = deviceId(device)
    this.#kinds.set(id, [device.kind, 'device'])
    this.#controllers.set(id, controller)
    if (device.kind !== 'cabinet') return
    for (const { shelf, rows } of device.shelves)
      for (let row = 1; row <= rows; row += 1) {
        const name = rowSubject({ cabinet: device.number, shelf, row })
        this.#controllers.set(name, controller)
        this.#cabinets.set(name, id)
      }
  }

  kindsOf(name: string): readonly FaultTarget[] {
    return this.#kinds.get(name) ?? []
  }

  isRow(name: string): boolean {
    return this.#cabinets.has(name)
  }

  controllerOf(name: string): string | undefined {
    return this.#controllers.get(name)
  }

  wholesOf(name: string): readonly string[] {
    return [this.#cabinets.get(name), this.#controllers.get(name)].filter((whole) => whole !== undefined)
  }
}

function describeState(parts: {
  hardware: HardwareDescription
  world: World
  gpio: GpioBank
  controllers: ReadonlyMap<string, Controller>
  faults: Faults
  clock: Clock
}): HubState {
  const { hardware, world, gpio, controllers, faults, clock } = parts
  const { state } = world.chronicle
  const moving = (reading: string | undefined, position: string): string =>
    reading === 'moving' ? reading : position
  return {
    hub_id: hardware.hubId,
    time: new Date(clock.now()).toISOString(),
    controllers: [...controllers.values()].map(({ id, isPowered, hasSession, sessions, description }) => ({
      controller: id,
      powered: isPowered,
      connected: hasSession,
      sessions,
      port: description.port,
    })),
    bins: [...state.bins].map(([bin, { door, lift, contents }]) => ({
      bin,
      door: moving(world.bins.get(bin)?.door(), door),
      lift: moving(world.bins.get(bin)?.lift(), lift),
      units: contents.length,
      contents: [...contents],
    })),
    rows: [...state.rows.values()].map((row) => ({ ...row })),
    fridges: [...world.fridges.values()].map((fridge) => ({
      fridge: fridge.device,
      celsius: Math.round(fridge.celsius() * 100) / 100,
    })),
    doors: world.doors.names.map((door) => ({
      door,
      open: world.doors.isOpen(door),
      locked: world.doors.isLocked(door),
    })),
    gpio: gpio.levels(),
    faults: faults.active(),
    last_actuation: world.chronicle.acts().length,
  }
}
