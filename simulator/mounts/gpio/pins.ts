import type { GpioLine, Level } from '../../../protocol/model/hardware.ts'
import { Errno } from './fuse-messages.ts'

const edges = ['none', 'rising', 'falling', 'both'] as const

/** The connection of the pins to the lines. Levels are logical. */
interface Wiring {
  /** The line's level; `undefined` if it is not known. */
  level(name: string): Level | undefined
  /** Whether a process has driven the output since the chip had power. */
  isDriven(name: string): boolean
  /** Returns false if the line cannot be driven now. */
  drive(name: string, level: Level): boolean
}

interface ChipDescription {
  label: string
  /** The number of the chip's first pin. */
  base: number
  /** The number of pins. */
  count: number
  lines: readonly GpioLine[]
}

interface Pin {
  line: GpioLine | undefined
  exported: boolean
  direction: 'in' | 'out'
  edge: (typeof edges)[number]
  activeLow: boolean
  /** The last known voltage. */
  voltage: Level
  /** Number of watched edges, plus 1. */
  events: number
}

/** A pin's files, by their names in its folder. */
export const registers = ['value', 'direction', 'edge', 'active_low'] as const
export type Register = (typeof registers)[number]

/** Pins by number, beginning at the chip's base. ENOENT if a pin is not exported. */
export interface Pins {
  chip: ChipDescription
  /** The exported pins. */
  numbers: () => number[]
  isExported: (pin: number) => boolean
  export: (pin: number) => Errno | undefined
  unexport: (pin: number) => Errno | undefined
  read: (pin: number, register: Register) => string | Errno
  write: (pin: number, register: Register, text: string) => Errno | undefined
  /** Grows with each watched edge; 0 if the pin is not exported. */
  events: (pin: number) => number
  /** Reads the present levels of the lines, and reports watched edges. */
  refresh: () => void
}

const inverted = (level: Level, invert: boolean): Level => ((level ^ (invert ? 1 : 0)) === 1 ? 1 : 0)

/** The registers of a GPIO chip as the kernel presents them in sysfs (SPEC §2). */
export function createPins(chip: ChipDescription, wiring: Wiring, onEdge: (pin: number) => void): Pins {
  const pins = new Map<number, Pin>()
  for (let offset = 0; offset < chip.count; offset++) {
    const line = chip.lines.find((line) => line.offset === offset)
    pins.set(chip.base + offset, {
      line,
      exported: false,
      direction: line?.direction === 'out' && wiring.isDriven(line.name) ? 'out' : 'in',
      edge: 'none',
      activeLow: false,
      voltage: line ? inverted(wiring.level(line.name) ?? 0, line.activeLow) : 0,
      events: 1,
    })
  }
  const access = registerAccess(wiring)

  const exported = (number: number): Pin | undefined => {
    const pin = pins.get(number)
    return pin?.exported ? pin : undefined
  }

  return {
    chip,
    numbers: () => [...pins.keys()].filter((number) => pins.get(number)!.exported),
    isExported: (number) => exported(number) !== undefined,
    export(number) {
      const pin = pins.get(number)
      if (!pin) return Errno.EINVAL
      if (pin.exported) return Errno.EBUSY
      Object.assign(pin, { exported: true, edge: 'none', activeLow: false })
      return undefined
    },
    unexport(number) {
      const pin = exported(number)
      if (!pin) return Errno.EINVAL
      pin.exported = false
      return undefined
    },
    read(number, register) {
      const pin = exported(number)
      return pin ? access[register].read(pin) : Errno.ENOENT
    },
    write(number, register, text) {
      const pin = exported(number)
      return pin ? access[register].write(pin, text) : Errno.ENOENT
    },
    events: (number) => exported(number)?.events ?? 0,
    refresh() {
      for (const [number, pin] of pins) {
        const level = pin.line && wiring.level(pin.line.name)
        if (!pin.line || level === undefined) continue
        const voltage = inverted(level, pin.line.activeLow)
        if (voltage === pin.voltage) continue
        pin.voltage = voltage
        const edge = inverted(voltage, pin.activeLow) === 1 ? 'rising' : 'falling'
        if (!pin.exported || (pin.edge !== edge && pin.edge !== 'both')) continue
        pin.events += 1
        onEdge(number)
      }
    },
  }
}

interface Access {
  read: (pin: Pin) => string
  write: (pin: Pin, text: string) => Errno | undefined
}

/** The access functions of each register of an exported pin. */
function registerAccess(wiring: Wiring): Record<Register, Access> {
  function drive(pin: Pin, voltage: Level): Errno | undefined {
    if (pin.line && !wiring.drive(pin.line.name, inverted(voltage, pin.line.activeLow))) return Errno.EIO
    pin.voltage = voltage
    return undefined
  }

  function setDirection(pin: Pin, text: string): Errno | undefined {
    if (!['in', 'out', 'low', 'high'].includes(text)) return Errno.EINVAL
    const direction = text === 'in' ? 'in' : 'out'
    if (direction === 'in' && pin.direction === 'in') return undefined
    if (direction === 'out' && pin.edge !== 'none') return Errno.EIO
    if (direction === 'out' && pin.line?.direction === 'in') return Errno.EPERM
    // An input is not driven, so its line falls back to its resting level.
    const resting = inverted(0, pin.line?.activeLow ?? false)
    const failure = drive(pin, direction === 'in' ? resting : text === 'high' ? 1 : 0)
    if (failure === undefined) pin.direction = direction
    return failure
  }

  return {
    value: {
      read: (pin) => String(inverted(pin.voltage, pin.activeLow)),
      write(pin, text) {
        if (pin.direction === 'in') return Errno.EPERM
        if (!/^\d+$/.test(text)) return Errno.EINVAL
        return drive(pin, inverted(Number(text) === 0 ? 0 : 1, pin.activeLow))
      },
    },
    direction: { read: (pin) => pin.direction, write: setDirection },
    edge: {
      read: (pin) => pin.edge,
      write(pin, text) {
        const edge = edges.find((edge) => edge === text)
        if (!edge) return Errno.EINVAL
        if (edge !== 'none' && pin.direction === 'out') return Errno.EIO
        pin.edge = edge
        return undefined
      },
    },
    active_low: {
      read: (pin) => (pin.activeLow ? '1' : '0'),
      write(pin, text) {
        if (!/^\d+$/.test(text)) return Errno.EINVAL
        pin.activeLow = Number(text) !== 0
        return undefined
      },
    },
  }
}
