import type { Clock } from '../../protocol/model/runtime.ts'

export const ROOM_CELSIUS = 21
/** Time constants: how fast a fridge cools, and how fast it warms. */
const COOLING_MS = 10 * 60_000
const WARMING_MS = 20 * 60_000

/** A fridge's air. Newton's law of cooling, evaluated when somebody reads. */
export interface Fridge {
  readonly device: string
  celsius(): number
}

/** `warms`: the compressor is off, or a door stands open. */
export function createFridge(
  device: string,
  targetCelsius: number,
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
      celsius = goal + (celsius - goal) * Math.exp(-(now - readAt) / (warming ? WARMING_MS : COOLING_MS))
      readAt = now
      return celsius
    },
  }
}
