import type { Level, GpioLine } from '../../../protocol/model/hardware.ts'
import { Errno } from './fuse-messages.ts'

export const edges = ['none', 'rising', 'falling', 'both'] as const
export type Edge = (typeof edges)[number]

/** What the pins are wired to. Levels are logical. */
export interface Wiring {
  /** The line's level; `undefined` while nobody can say. */
  level(name: string): Level | undefined
  /** Whether some process has driven the output since the chip had power. */
  isDriven(name: string): boolean
  /** False where the line cannot be driven now. */
  drive(name: string, level: Level): boolean
}

export interface ChipDescription {
  label: string
  /** The number of the chip's first pin. */
  base: number
  /** How many pins it has. */
  count: number
  lines: readonly GpioLine[]
}

interface Pin {
  line: GpioLine | undefined
  exported: boolean
  direction: 'in' | 'out'
  edge: Edge
  activeLow: boolean
  /** The voltage, as last known. */
  voltage: Level
  /** Grows with each edge that is watched for; 1 when nothing has happened yet. */
  events: number
}

const inverted = (level: Level, invert: boolean): Level => ((level ^ (invert ? 1 : 0)) === 1 ? 1 : 0)

type Read = (pin: number) => string | Errno
type Write = (pin: number, text: string) => Errno | undefined

/** Pins by their numbers, which begin at the chip's base. ENOENT where one is not exported. */
export interface Pins {
  chip: ChipDescription
  /** Those exported. */
  numbers: () => number[]
  isExported: (pin: number) => boolean
  export: (pin: number) => Errno | undefined
  unexport: (pin: number) => Errno | undefined
  direction: Read
  setDirection: Write
  value: Read
  setValue: Write
  edge: Read
  setEdge: Write
  activeLow: Read
  setActiveLow: Write
  /** Grows with each edge that was watched for; 0 where the pin is not exported. */
  events: (pin: number) => number
  /** Takes up what the lines say now, and reports the edges that are watched for. */
  refresh: () => void
}

/** The registers of a GPIO chip as the kernel keeps them for sysfs users (SPEC §2). */
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

  const exported = (number: number): Pin | undefined => {
    const pin = pins.get(number)
    return pin?.exported ? pin : undefined
  }

  function drive(pin: Pin, voltage: Level): Errno | undefined {
    if (pin.line && !wiring.drive(pin.line.name, inverted(voltage, pin.line.activeLow))) return Errno.EIO
    pin.voltage = voltage
    return undefined
  }

  function setDirection(pin: Pin, text: string): Errno | undefined {
    switch (text) {
      case 'in': {
        if (pin.direction === 'in') return undefined
        // Nothing drives the line any more: it falls back to its resting level.
        const failure = drive(pin, inverted(0, pin.line?.activeLow ?? false))
        if (failure === undefined) pin.direction = 'in'
        return failure
      }
      case 'out':
      case 'low':
      case 'high': {
        if (pin.edge !== 'none') return Errno.EIO
        if (pin.line?.direction === 'in') return Errno.EPERM
        const failure = drive(pin, text === 'high' ? 1 : 0)
        if (failure === undefined) pin.direction = 'out'
        return failure
      }
      default:
        return Errno.EINVAL
    }
  }

  return {
    chip,
    numbers: () => [...pins.keys()].filter((number) => pins.get(number)!.exported),
    isExported: (number: number) => exported(number) !== undefined,

    export(number: number): Errno | undefined {
      const pin = pins.get(number)
      if (!pin) return Errno.EINVAL
      if (pin.exported) return Errno.EBUSY
      Object.assign(pin, { exported: true, edge: 'none', activeLow: false })
      return undefined
    },

    unexport(number: number): Errno | undefined {
      const pin = exported(number)
      if (!pin) return Errno.EINVAL
      pin.exported = false
      return undefined
    },

    direction: (number: number) => exported(number)?.direction ?? Errno.ENOENT,
    setDirection(number: number, text: string): Errno | undefined {
      const pin = exported(number)
      return pin ? setDirection(pin, text) : Errno.ENOENT
    },

    value(number: number): string | Errno {
      const pin = exported(number)
      return pin ? String(inverted(pin.voltage, pin.activeLow)) : Errno.ENOENT
    },
    setValue(number: number, text: string): Errno | undefined {
      const pin = exported(number)
      if (!pin) return Errno.ENOENT
      if (pin.direction === 'in') return Errno.EPERM
      if (!/^\d+$/.test(text)) return Errno.EINVAL
      return drive(pin, inverted(Number(text) === 0 ? 0 : 1, pin.activeLow))
    },

    edge: (number: number) => exported(number)?.edge ?? Errno.ENOENT,
    setEdge(number: number, text: string): Errno | undefined {
      const pin = exported(number)
      const edge = edges.find((edge) => edge === text)
      if (!pin) return Errno.ENOENT
      if (!edge) return Errno.EINVAL
      if (edge !== 'none' && pin.direction === 'out') return Errno.EIO
      pin.edge = edge
      return undefined
    },

    activeLow(number: number): string | Errno {
      const pin = exported(number)
      return pin ? (pin.activeLow ? '1' : '0') : Errno.ENOENT
    },
    setActiveLow(number: number, text: string): Errno | undefined {
      const pin = exported(number)
      if (!pin) return Errno.ENOENT
      if (!/^\d+$/.test(text)) return Errno.EINVAL
      pin.activeLow = Number(text) !== 0
      return undefined
    },

    events: (number: number) => exported(number)?.events ?? 0,

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
