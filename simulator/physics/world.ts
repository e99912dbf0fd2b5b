import { deviceId, type HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Runtime, Clock } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { AppendLog } from '../storage/append-log.ts'
import { type LoadedRow, type WorldRecord, fullRows } from './world-state.ts'
import { Bin, type MechanismOptions } from './bin.ts'
import { Cabinet } from './cabinet.ts'
import { openChronicle, type Chronicle } from './chronicle.ts'
import { createFridge, type Fridge } from './fridge.ts'
import type { GpioBank } from './gpio-bank.ts'
import type { Timing } from './motion.ts'
import { locationKey } from '../../protocol/model/location.ts'

/** The physical hub: everything that moves, whether or not its electronics have power. */
export interface World {
  readonly chronicle: Chronicle
  /** By device id. */
  readonly bins: ReadonlyMap<string, Bin>
  readonly cabinets: ReadonlyMap<string, Cabinet>
  readonly fridges: ReadonlyMap<string, Fridge>
  readonly doors: Doors
  /** Cables were swapped or corrected: reads every sensor again. */
  rewired(): void
}

export interface WorldOptions {
  hardware: HardwareDescription
  runtime: Runtime
  log: AppendLog<WorldRecord>
  gpio: GpioBank
  timing: Timing
  /** The shelves of a new world; by default every row is full. */
  loaded?: LoadedRow[] | undefined
  strikes: (type: FaultType, target: string) => boolean
  onMotion: (device: string, durationMs: number) => void
}

export function createWorld(options: WorldOptions): World {
  const { hardware, runtime, gpio, timing, strikes, onMotion } = options
  const { clock, random } = runtime
  const chronicle = openChronicle(options.log, hardware, clock, () => options.loaded ?? fullRows(hardware))
  const mechanism: MechanismOptions = { chronicle, clock, timing, strikes, onMotion }
  const bins = new Map<string, Bin>()
  const cabinets = new Map<string, Cabinet>()
  const fridges = new Map<string, Fridge>()
  const doors = createDoors(gpio, chronicle, clock, strikes)

  for (const device of hardware.controllers.flatMap((controller) => controller.devices)) {
    const id = deviceId(device)
    switch (device.kind) {
      case 'bin':
        bins.set(id, new Bin(id, chronicle.state.bins.get(id)!, mechanism))
        break
      case 'cabinet':
        cabinets.set(
          id,
          new Cabinet({
            ...mechanism,
            device: id,
            number: device.number,
            random,
            binOf: (bin) => bins.get(`bin-${bin}`),
          }),
        )
        break
      case 'fridge': {
        const ofFridge = doors.names.filter((name) => name.startsWith(`fridge_${device.number}_`))
        const warms = (): boolean => strikes('warm_fridge', id) || ofFridge.some((name) => doors.isOpen(name))
        const { targetCelsius } = device
        fridges.set(id, createFridge(id, { targetCelsius, timing, clock, warms, strikes }))
      }
    }
  }
  return {
    chronicle,
    bins,
    cabinets,
    fridges,
    doors,
    rewired() {
      for (const bin of bins.values()) bin.rewired()
      doors.rewired()
    },
  }
}

/**
 * The doors on GPIO lines. Each has a lock that the hub energises, a sensor that the hub reads, and a hand that opens
 * it.
 */
interface Doors {
  readonly names: readonly string[]
  isOpen(name: string): boolean
  /** A door without a lock line is never locked. */
  isLocked(name: string): boolean
  /** The contact begins or stops to show the wrong side. */
  flicker(name: string, isWrong: boolean): void
  /** Reads the sensors again, because faults may have changed the wiring. */
  rewired(): void
  move(name: string, to: 'open' | 'closed', action: 'open_door' | 'close_door' | 'force_open'): void
}

const BOUNCES = 6
const BOUNCE_MS = 33

function createDoors(
  gpio: GpioBank,
  chronicle: Chronicle,
  clock: Clock,
  strikes: (type: FaultType, door: string) => boolean,
): Doors {
  const { doors } = chronicle.state
  const lines = new Set(gpio.lines.map((line) => line.name))
  const isOpen = (name: string): boolean => doors.get(name) ?? false

  function show(name: string, isWrong = false): void {
    const shown = isOpen(name) !== (strikes('inverted_sensor', name) !== isWrong)
    if (lines.has(`${name}_door`)) gpio.set(`${name}_door`, shown ? 1 : 0)
  }
  for (const name of doors.keys()) show(name)

  gpio.onChange((line, level) => {
    if (!line.endsWith('_lock')) return
    const device = line.slice(0, -'_lock'.length)
    chronicle.happened({ device, action: level === 1 ? 'unlock' : 'lock', detail: { open: isOpen(device) } })
  })

  return {
    names: [...doors.keys()],
    isOpen,
    isLocked: (name) => lines.has(`${name}_lock`) && gpio.get(`${name}_lock`) === 0,
    flicker: show,
    rewired() {
      for (const name of doors.keys()) show(name)
    },
    move(name, to, action) {
      chronicle.happened({ device: name, action, detail: { to, by: 'hand' } })
      if (strikes('sensor_bounce', name) && lines.has(`${name}_door`))
        for (let bounce = 1; bounce < BOUNCES; bounce++)
          clock.after(bounce * BOUNCE_MS, () => gpio.set(`${name}_door`, bounce % 2 === 1 ? 0 : 1))
      show(name)
      if (strikes('sensor_bounce', name)) clock.after(BOUNCES * BOUNCE_MS, () => show(name))
    },
  }
}

/** The action of a person in the room. */
export type PersonAction =
  | { action: 'take_items'; target: string; units?: number | undefined }
  /** A person puts something into an open bin. */
  | { action: 'put_items'; target: string; units?: number | undefined }
  | { action: 'open_door' | 'close_door'; target: string }
  | {
      action: 'restock'
      /** `cabinet-1` with `shelf` and `row`. */
      target: string
      shelf: number
      row: number
      units: number
      product_id?: number | undefined
    }

export type ActionResult = { ok: true; detail: Record<string, unknown> } | { ok: false; reason: string }

const refuse = (reason: string): ActionResult => ({ ok: false, reason })

/** Executes the action if the world allows it; otherwise returns the obstacle. */
export function act(world: World, wanted: PersonAction): ActionResult {
  switch (wanted.action) {
    case 'take_items':
      return takeItems(world, wanted.target, wanted.units)
    case 'put_items':
      return putItems(world, wanted.target, wanted.units ?? 1)
    case 'open_door':
    case 'close_door':
      return moveDoor(world, wanted.target, wanted.action)
    case 'restock':
      return restock(world, wanted)
  }
}

function takeItems({ chronicle, bins }: World, target: string, wanted?: number): ActionResult {
  const state = chronicle.state.bins.get(target)
  const bin = bins.get(target)
  if (!state || !bin) return refuse(`there is no bin ${target}; take_items needs a target such as bin-1`)
  if (state.door !== 'open') return refuse(`the door of ${target} is ${state.door}, not open`)
  const units = Math.min(wanted ?? state.contents.length, state.contents.length)
  if (units === 0) return refuse(`${target} is empty`)
  chronicle.happened({ device: target, action: 'take_items', detail: { units, by: 'hand' } })
  bin.touched()
  return { ok: true, detail: { units, left: state.contents.length } }
}

function putItems({ chronicle, bins }: World, target: string, units: number): ActionResult {
  const state = chronicle.state.bins.get(target)
  const bin = bins.get(target)
  if (!state || !bin) return refuse(`there is no bin ${target}; put_items needs a target such as bin-1`)
  if (state.door !== 'open') return refuse(`the door of ${target} is ${state.door}, not open`)
  chronicle.happened({ device: target, action: 'put_items', detail: { units, by: 'hand' } })
  bin.touched()
  return { ok: true, detail: { units, left: state.contents.length } }
}

function moveDoor({ doors, bins }: World, target: string, action: 'open_door' | 'close_door'): ActionResult {
  const bin = bins.get(target)
  if (bin) {
    if (action === 'open_door')
      return refuse(`the door of ${target} is moved by its motor; the fault door_forced opens it by force`)
    if (bin.door() === 'closed') return refuse(`the door of ${target} is closed already`)
    bin.forceDoor('closed', 'close_door')
    return { ok: true, detail: { door: 'closed' } }
  }
  if (!doors.names.includes(target))
    return refuse(`there is no door ${target}; doors: ${[...doors.names, ...bins.keys()].join(', ')}`)
  const open = action === 'open_door'
  if (doors.isOpen(target) === open) return refuse(`door ${target} is ${open ? 'open' : 'closed'} already`)
  if (open && doors.isLocked(target)) return refuse(`door ${target} is locked`)
  doors.move(target, open ? 'open' : 'closed', action)
  return { ok: true, detail: { door: open ? 'open' : 'closed' } }
}

function restock({ chronicle }: World, wanted: Extract<PersonAction, { action: 'restock' }>): ActionResult {
  const { shelf, row } = wanted
  const cabinet = /^cabinet-(\d)$/.exec(wanted.target)?.[1]
  const state = chronicle.state.rows.get(locationKey({ cabinet: Number(cabinet), shelf, row }))
  if (!state) return refuse(`there is no shelf ${shelf}, row ${row} in ${wanted.target}`)
  const free = state.depth - state.units
  if (wanted.units > free) return refuse(`only ${free} more units fit into that row`)
  chronicle.happened({
    device: wanted.target,
    action: 'restock',
    detail: { shelf, row, units: wanted.units, product_id: wanted.product_id ?? null, by: 'hand' },
  })
  return { ok: true, detail: { units: state.units } }
}
