import { rowSubject } from '../protocol/model/subject.ts'
import { deviceId, type HardwareDescription } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Clock, Random, Runtime } from '../protocol/model/runtime.ts'
import type { OpenLinePort } from '../protocol/serial/line-port.ts'
import { type Controller, createController } from './board/controller.ts'
import type { FaultTarget, FaultType } from './faults/fault-types.ts'
import { createFaults, type FaultMap, type FaultRequest, type Faults, seededRandom } from './faults/faults.ts'
import { crossed, lineFilter } from './faults/line-faults.ts'
import { startProgram } from './firmware/program.ts'
import { usedMemory } from './firmware/used-board.ts'
import type { HubState } from './hub-state.ts'
import { createWire, mountInProcess, type WatchedWire } from './mounts/wire.ts'
import { createGpioBank, type GpioBank } from './physics/gpio-bank.ts'
import { defaultTiming, type Timing } from './physics/motion.ts'
import { act, type Deed, type DeedResult } from './physics/people.ts'
import { type Act, doorNames, type LoadedRow, type WorldRecord } from './physics/world-state.ts'
import { createWorld, type World } from './physics/world.ts'
import type { SimulatorStorage } from './storage/append-log.ts'

export interface SimulatedHubOptions {
  hardware: HardwareDescription
  /** The world's own: its clock goes on while the hub is dead. */
  runtime: Runtime
  /** What outlives this object: made anew with the same storage, the hub has had a power failure. */
  storage: SimulatorStorage
  log: Log
  /** Of faults and falls, where they are to be reproducible apart from everything else. Default: the runtime's. */
  chance?: Random | undefined
  timing?: Partial<Timing>
  /** How long the firmware waits for a fall after a turn (SPEC §6). */
  dropWindowMs?: number
  /** Of a line in the in-process mount, asked for each line. */
  lineLatencyMs?: () => number
  /** Controllers whose firmware is another program's, which is plugged in (`board/SPEC.md`). */
  openBoards?: ReadonlySet<string> | undefined
  /** By controller: the version of the serial protocol that its firmware speaks; none = the newest. */
  versions?: ReadonlyMap<string, number> | undefined
  /** What the shelves hold at the very beginning; none = full. */
  loaded?: LoadedRow[] | undefined
}

/** Person-made act on a controller: its reset button. */
export type Press = { action: 'press'; target: string }

export interface SimulatedHub {
  readonly hardware: HardwareDescription
  /** The serial lines, in-process; `path` is a controller's `port` or its id. */
  readonly openPort: OpenLinePort
  readonly gpio: GpioBank
  readonly world: World
  readonly faults: Faults
  readonly controllers: ReadonlyMap<string, Controller>
  /** The ends of the serial lines, for the mounts. */
  readonly wires: readonly WatchedWire[]
  /** The witness: physical acts with `n` greater than `after`. */
  actuations(after?: number): Act[]
  act(deed: Deed | Press): DeedResult
  /** Power of the whole hub's electronics, or of one controller; `forMs`: it comes back by itself. */
  power(state: 'on' | 'off', controllerId?: string, forMs?: number): void
  state(): HubState
  /** What happens by chance from now on is the same for the same seed. */
  reseed(seed: number): void
  /** Everything off, for good: as the end of the process. */
  stop(): void
}

const BROWN_OUT_MS = 1000
const RESET_MS = 100
const BLINK_MS = 250
const DROP_WINDOW_MS = 1000

/** A hub's hardware in software. Powered when it is created. */
export function createSimulatedHub(options: SimulatedHubOptions): SimulatedHub {
  const { hardware, runtime, storage } = options
  const { clock } = runtime
  let drawn = options.chance ?? runtime.random
  const chance: Random = { fraction: () => drawn.fraction(), bytes: (count) => drawn.bytes(count) }
  const gpio = createGpioBank(hardware.gpio.lines)
  const map = faultMap(hardware)
  const faults = createFaults({ clock, random: chance }, map, {
    onInstant: strike,
    onRewired: () => world.rewired(),
    onRaised: ({ type, target }) => {
      if (type !== 'blinking_contact') return
      for (const each of target === undefined ? [...world.bins.keys(), ...world.doors.names] : [target])
        blink(each)
    },
  })
  const strikes = (type: FaultType, target: string): boolean => faults.strikes(type, target)
  const controllers = new Map<string, Controller>()
  const wires: WatchedWire[] = []
  const transmitters = new Map<string, (line: string) => void>()
  let mainsOn = true
  let stopped = false

  const world = createWorld({
    hardware,
    runtime: { clock, random: chance },
    gpio,
    log: storage.open<WorldRecord>('world'),
    timing: { ...defaultTiming, ...options.timing },
    loaded: options.loaded,
    strikes,
    onMotion(device, durationMs) {
      const owner = map.controllerOf(device)
      if (owner !== undefined && faults.strikes('brown_out_in_motion', device))
        clock.after(chance.fraction() * durationMs, () => cutPower([owner], BROWN_OUT_MS))
    },
  })

  const lines = hardware.controllers.map(({ id }) => id)
  const ends = (): string[] =>
    crossed(
      lines,
      faults.active().flatMap(({ type, target }) => (type === 'crossed_cable' ? [target!] : [])),
    )
  for (const [index, description] of hardware.controllers.entries()) {
    const { id, port } = description
    const { wire, fromController } = createWire(id, port, () => controllers.get(ends()[index]!)!, {
      toHub: lineFilter(faults, id, chance, 'to_hub'),
      toController: lineFilter(faults, id, chance, 'to_controller'),
    })
    wires.push(wire)
    transmitters.set(id, fromController)
    controllers.set(
      id,
      createController({
        description,
        world,
        memory: storage.open<object>(`memory-${id}`),
        start: options.openBoards?.has(id)
          ? undefined
          : (ask) => startProgram(ask, runtime, options.versions?.get(id)),
        strikes,
        dropWindowMs: options.dropWindowMs ?? DROP_WINDOW_MS,
        transmit: (line) => transmitters.get(lines[ends().indexOf(id)]!)!(line),
      }),
    )
  }

  function cutPower(ids: readonly string[], forMs?: number): void {
    for (const id of ids) controllers.get(id)?.powerOff()
    if (forMs !== undefined)
      clock.after(forMs, () => {
        if (mainsOn && !stopped) restorePower(ids)
      })
  }

  function restorePower(ids: readonly string[]): void {
    for (const id of ids) controllers.get(id)?.powerOn()
  }

  /** Faults that happen when they are raised. */
  function strike({ type, target, for_ms = BROWN_OUT_MS }: FaultRequest): void {
    const owner = target === undefined ? undefined : map.controllerOf(target)
    const hit = owner === undefined ? [...controllers.keys()] : [owner]
    if (type === 'door_forced') {
      const bin = world.bins.get(target!)
      if (bin) bin.forceDoor('open', 'force_open')
      else world.doors.move(target!, 'open', 'force_open')
      return
    }
    cutPower(hit, for_ms)
    if (type !== 'memory_loss' && type !== 'used_board') return
    for (const id of hit) {
      const controller = controllers.get(id)!
      const isUsed = type === 'used_board'
      // One that nobody here has: two rooms of one world may have their cables crossed.
      const elsewhere = hardware.hubId + 1_000_000
      controller.replaceMemory(isUsed ? usedMemory(controller.description, elsewhere, runtime) : [])
    }
  }

  /** The contact flickers until its fault is over. */
  function blink(target: string): void {
    let isWrong = false
    const toggle = (): void => {
      if (stopped) return
      const isOn = faults.strikes('blinking_contact', target)
      isWrong = isOn && !isWrong
      const bin = world.bins.get(target)
      if (bin) bin.flicker(isWrong)
      else world.doors.flicker(target, isWrong)
      if (isOn) clock.after(BLINK_MS, toggle)
    }
    toggle()
  }

  function press(target: string): DeedResult {
    const id = map.controllerOf(target)
    if (id === undefined)
      return { ok: false, reason: `press needs a controller: ${[...controllers.keys()].join(', ')}` }
    cutPower([id], RESET_MS)
    return { ok: true, detail: { controller: id, pressed: 'reset' } }
  }

  function power(state: 'on' | 'off', controllerId?: string, forMs?: number): void {
    const ids = controllerId === undefined ? [...controllers.keys()] : [controllerId]
    if (controllerId === undefined) mainsOn = state === 'on' || forMs !== undefined
    if (state === 'on') restorePower(ids)
    else cutPower(ids, forMs)
    // Locks fall back to locked (I7).
    if (state === 'off' && controllerId === undefined)
      for (const { name, direction } of hardware.gpio.lines) if (direction === 'out') gpio.set(name, 0)
  }

  restorePower([...controllers.keys()])
  const openPort = mountInProcess(wires, { clock, latencyMs: options.lineLatencyMs ?? (() => 1) })

  return {
    hardware,
    openPort,
    gpio,
    world,
    faults,
    controllers,
    wires,
    actuations: (after) => world.chronicle.acts(after),
    act: (deed) => (deed.action === 'press' ? press(deed.target) : act(world, deed)),
    power,
    state: () => describeState({ hardware, world, gpio, controllers, faults, clock }),
    reseed: (seed) => void (drawn = seededRandom(seed)),
    stop() {
      stopped = true
      cutPower([...controllers.keys()])
    },
  }
}

/** What faults can be aimed at, and the controller of each name; a controller's own name for itself. */
function faultMap(
  hardware: HardwareDescription,
): FaultMap & { controllerOf(name: string): string | undefined } {
  const kinds = new Map<string, FaultTarget[]>()
  const owners = new Map<string, string>()
  const cabinets = new Map<string, string>()
  for (const { id, devices } of hardware.controllers) {
    kinds.set(id, ['controller'])
    owners.set(id, id)
    for (const device of devices) {
      kinds.set(deviceId(device), [device.kind, 'device'])
      owners.set(deviceId(device), id)
      if (device.kind !== 'cabinet') continue
      for (const { shelf, rows } of device.shelves)
        for (let row = 1; row <= rows; row += 1) {
          const name = rowSubject({ cabinet: device.number, shelf, row })
          owners.set(name, id)
          cabinets.set(name, deviceId(device))
        }
    }
  }
  for (const name of doorNames(hardware)) kinds.set(name, [...(kinds.get(name) ?? []), 'door'])
  return {
    kindsOf: (name) => kinds.get(name) ?? [],
    isRow: (name) => cabinets.has(name),
    controllerOf: (name) => owners.get(name),
    wholesOf: (name) => [cabinets.get(name), owners.get(name)].filter((whole) => whole !== undefined),
  }
}

export function describeState(parts: {
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
