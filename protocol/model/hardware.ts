import { z } from 'zod'
import type { Cancel } from './runtime.ts'

/**
 * The description of a hub's hardware: one file (`hardware.json`). The hub's service drives the devices in it, and the
 * simulator simulates them.
 */

const number = (max: number) => z.int().min(1).max(max)

export const BinDevice = z
  .strictObject({
    kind: z.literal('bin').describe('Always `bin`.'),
    number: number(4).describe('Number of the bin.'),
    capacity: z.int().min(1).max(100).default(10).describe('Number of units that fit; 10 if absent.'),
  })
  .meta({ id: 'BinDevice', description: 'A delivery bin.' })

const Shelf = z
  .strictObject({
    shelf: number(20).describe('Number of the shelf.'),
    rows: number(40).describe('Number of rows.'),
    depth: z.int().min(1).max(60).default(12).describe('Number of units that fit into a row; 12 if absent.'),
  })
  .meta({ id: 'CabinetShelf', description: 'A shelf of a cabinet.' })

export const CabinetDevice = z
  .strictObject({
    kind: z.literal('cabinet').describe('Always `cabinet`.'),
    number: number(4).describe('Number of the cabinet.'),
    shelves: z.array(Shelf).min(1).describe('Shelves of the cabinet.'),
  })
  .meta({ id: 'CabinetDevice', description: 'A cabinet with vending rows.' })

export const FridgeDevice = z
  .strictObject({
    kind: z.literal('fridge').describe('Always `fridge`.'),
    number: number(8).describe('Number of the fridge.'),
    targetCelsius: z
      .number()
      .min(-30)
      .max(20)
      .default(4)
      .describe('Temperature that the fridge keeps, in °C; 4 if absent.'),
    limitCelsius: z
      .number()
      .min(-30)
      .max(30)
      .default(5)
      .describe('Temperature in °C above which goods are no longer sold after half an hour; 5 if absent.'),
  })
  .meta({ id: 'FridgeDevice', description: 'A fridge.' })

export const DeviceDescription = z
  .discriminatedUnion('kind', [BinDevice, CabinetDevice, FridgeDevice])
  .meta({ id: 'DeviceDescription', description: 'A device of a controller.' })
export type DeviceDescription = z.infer<typeof DeviceDescription>

/** One microcontroller on one serial line. */
export const ControllerDescription = z
  .strictObject({
    id: z
      .string()
      .regex(
        /^[a-z][a-z0-9-]{0,30}$/,
        'must begin with a small letter and have at most 31 small letters, digits and hyphens',
      )
      .describe('Name of the controller.'),
    // In a simulated hub the simulator makes the path a link to a pseudo-terminal.
    port: z.string().min(1).describe('Stable path of the serial port, such as `/dev/serial/by-id/…`.'),
    baudRate: z.int().positive().default(115_200).describe('Speed in baud; 115200 if absent.'),
    devices: z.array(DeviceDescription).min(1).describe('Devices of the controller.'),
  })
  .meta({ id: 'ControllerDescription', description: 'A microcontroller on one serial line.' })
export type ControllerDescription = z.infer<typeof ControllerDescription>

/** The doors of a fridge. */
export const fridgeSides = ['left', 'middle', 'right'] as const
export const FridgeSide = z.enum(fridgeSides)
export type FridgeSide = z.infer<typeof FridgeSide>

/** The name of a door in the names of GPIO lines: `fridge_1_left`. */
export const fridgeDoor = (fridge: number, side: FridgeSide): string => `fridge_${fridge}_${side}`
export const MAIN_DOOR = 'main'

/**
 * GPIO line names: `main_lock`, `main_door` (sensor) and for each fridge n and side left|middle|right
 * `fridge_<n>_<side>_lock`, `fridge_<n>_<side>_door`. Locks: 1 = unlocked (energised). Sensors: 1 = open.
 */
export const GpioLine = z
  .strictObject({
    name: z
      .string()
      .regex(
        /^(main|fridge_[1-8]_(left|middle|right))_(lock|door)$/,
        'must name a lock or a door: main_lock, main_door, fridge_1_left_lock, fridge_1_left_door …',
      )
      .meta({ description: 'Lock or door sensor of the line.', examples: ['main_lock'] }),
    // The chip's base is discovered by its label.
    offset: z.int().min(0).max(511).describe('Offset of the line within the chip.'),
    direction: z.enum(['in', 'out']).meta({
      id: 'GpioDirection',
      description: 'Direction of a GPIO line.\n\n- `in`: a sensor.\n- `out`: a lock.',
    }),
    activeLow: z.boolean().default(false).describe('True if a low level means 1; false if absent.'),
  })
  .meta({ id: 'GpioLine', description: 'A GPIO line.' })
export type GpioLine = z.infer<typeof GpioLine>

/** The cabinets behind a fridge's doors (O §2, fridge door map). */
const FridgeDoors = z
  .strictObject({
    fridge: number(8).describe('Number of the fridge.'),
    left: number(4).describe('Number of the cabinet behind the left door.'),
    middle: number(4).describe('Number of the cabinet behind the middle door.'),
    right: number(4).describe('Number of the cabinet behind the right door.'),
  })
  .meta({ id: 'FridgeDoorsDescription', description: 'The cabinets behind the doors of a fridge.' })

const Gpio = z
  .strictObject({
    chipLabel: z
      .string()
      .min(1)
      .describe('Label of the GPIO chip, as in `/sys/class/gpio/gpiochip<base>/label`.'),
    lines: z.array(GpioLine).describe('Lines of the chip.'),
  })
  .meta({ id: 'GpioDescription', description: 'The GPIO lines of the locks and door sensors.' })

export const HardwareDescription = z
  .strictObject({
    hubId: z.int().positive().describe('Number of the hub.'),
    controllers: z.array(ControllerDescription).min(1).describe('Controllers of the hub.'),
    gpio: Gpio,
    fridgeDoors: z
      .array(FridgeDoors)
      .default([])
      .describe('Cabinets behind the doors of each fridge; empty if absent.'),
  })
  .meta({ id: 'HardwareDescription', description: 'The hardware of a hub.' })
  .superRefine((hub, ctx) => {
    const seen = new Set<string>()
    for (const controller of hub.controllers)
      for (const device of controller.devices) {
        const id = deviceId(device)
        if (seen.has(id)) ctx.addIssue({ code: 'custom', message: `device ${id} is described twice` })
        seen.add(id)
      }
    const keys = [
      ...hub.gpio.lines.map((line) => line.name),
      ...hub.gpio.lines.map((line) => `offset ${line.offset}`),
    ]
    for (const key of keys.filter((key, index) => keys.indexOf(key) !== index))
      ctx.addIssue({ code: 'custom', message: `GPIO line ${key} is described twice` })
    const ids = hub.controllers.map((controller) => controller.id)
    if (new Set(ids).size !== ids.length) ctx.addIssue({ code: 'custom', message: 'controller ids repeat' })
  })
export type HardwareDescription = z.infer<typeof HardwareDescription>

/** `bin-2`, `cabinet-1`, `fridge-1`: a device's name on its serial line and in logs. */
export function deviceId(device: Pick<DeviceDescription, 'kind' | 'number'>): string {
  return `${device.kind}-${device.number}`
}

/**
 * Named GPIO lines (`hardware.ts` lists the names), as the hub sees them. Levels are logical: 1 is active (unlocked,
 * open) whatever the line's polarity. Implementations: `onoff` over sysfs, a socket, memory.
 */
export type Level = 0 | 1

/** `isFinal`: the problem is permanent, because the machine or its kernel has no such lines. */
export interface LinesProblem {
  reason: string
  isFinal: boolean
}

export interface GpioLines {
  /** The present level; `undefined` if the line cannot be read. */
  read(name: string): Level | undefined
  /** Drives an output. Returns false if that failed. */
  write(name: string, level: Level): boolean
  /** Calls `listener` after any edge of an input, until it is cancelled. Edges merge, so `listener` must read the level. */
  watch(name: string, listener: () => void): Cancel
  /** Why no line can be used, if the reason is known; undefined while lines can be used. */
  problem?(): LinesProblem | undefined
  /** Releases the lines without changing any level. */
  close(): void
}
