import type { Clock } from '../../protocol/model/runtime.ts'
import type { Timing } from './motion.ts'

export const ROOM_CELSIUS = 21

/** A fridge's air. Newton's law of cooling, evaluated when somebody reads. */
export interface Fridge {
  readonly device: string
  celsius(): number
}

/** `warms`: the compressor is off, or a door stands open. */
export function createFridge(
  device: string,
  targetCelsius: number,
  { coolingMs, warmingMs }: Pick<Timing, 'coolingMs' | 'warmingMs'>,
  clock: Clock,
  warms: () => boolean,
): Fridge {
  let celsius = targetCelsius
  let readAt = clock.monotonic()
  return {
    device,
    celsius() {
      const now = clock.monotonic()
      const warming = warms()
      const goal = warming ? ROOM_CELSIUS : targetCelsius
      celsius = goal + (celsius - goal) * Math.exp(-(now - readAt) / (warming ? warmingMs : coolingMs))
      readAt = now
      return celsius
    },
  }
}
