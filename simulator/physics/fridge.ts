import type { Clock } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { Timing } from './motion.ts'

const ROOM_CELSIUS = 21
/**
 * A compressor switches on and off, so the air swings around its target. A working probe thus never repeats one value
 * for hours.
 */
const SWING_CELSIUS = 0.2
const SWING_MS = 15 * 60_000
/** The occasional readings of a damaged probe: the power-on value of a common sensor, its end of scale, a jump. */
const OUTLIERS = [85, -55, 30] as const

/** A fridge: its air, and the probe in it. */
export interface Fridge {
  readonly device: string
  celsius(): number
  /** The reading of the probe; null if it gives none. */
  probe(): number | null
}

interface FridgeOptions {
  targetCelsius: number
  timing: Pick<Timing, 'coolingMs' | 'warmingMs'>
  clock: Clock
  /** The compressor is off, or a door is open. */
  warms: () => boolean
  strikes: (type: FaultType, device: string) => boolean
}

/** Newton's law of cooling, evaluated at each reading. */
export function createFridge(device: string, options: FridgeOptions): Fridge {
  const { targetCelsius, timing, clock, warms, strikes } = options
  const { coolingMs, warmingMs } = timing
  const builtAt = clock.monotonic()
  let air = targetCelsius
  let readAt = builtAt
  let frozen: number | undefined
  let outliers = 0

  function celsius(): number {
    const now = clock.monotonic()
    const warming = warms()
    const goal = warming ? ROOM_CELSIUS : targetCelsius
    air = goal + (air - goal) * Math.exp(-(now - readAt) / (warming ? warmingMs : coolingMs))
    readAt = now
    return air + SWING_CELSIUS * Math.sin((2 * Math.PI * (now - builtAt)) / SWING_MS)
  }

  return {
    device,
    celsius,
    probe() {
      if (strikes('broken_probe', device)) return null
      if (strikes('frozen_probe', device)) return (frozen ??= celsius())
      frozen = undefined
      // The last value of a round is the target, whatever the temperature is.
      if (strikes('probe_outliers', device))
        return [...OUTLIERS, targetCelsius][outliers++ % (OUTLIERS.length + 1)]!
      return celsius()
    },
  }
}
