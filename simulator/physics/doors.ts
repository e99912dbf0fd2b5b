import type { Clock } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { Chronicle } from './chronicle.ts'
import type { GpioBank } from './gpio-bank.ts'

/**
 * The doors on GPIO lines. Each has a lock that the hub energises, a sensor that the hub reads, and a hand that opens
 * it.
 */
export interface Doors {
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

export function createDoors(
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
