/** How a motor's run ended by itself. */
export type MotionEnd = 'arrived' | 'stalled' | 'obstructed'

/** A motor that is switched on. */
export interface Motion {
  /** Takes its power away. After the end, nothing. */
  stop(): void
  /** Whether the encoder has counted anything. */
  moved(): boolean
}

/** `onEnd` is called at most once, later than the call that started the motor, and not after `stop`. */
export type OnMotionEnd = (end: MotionEnd) => void

/** How long the mechanisms take, in milliseconds. */
export interface Timing {
  doorMs: number
  liftMs: number
  /** One turn of a row's motor. */
  turnMs: number
  /** From the shelf past the chute's sensor. */
  fallMs: number
  /** Until a motor that cannot move is noticed. */
  stallMs: number
  /** Time constants of a fridge: how fast it cools, and how fast it warms. */
  coolingMs: number
  warmingMs: number
}

export const defaultTiming: Timing = {
  doorMs: 1200,
  liftMs: 2500,
  turnMs: 1800,
  fallMs: 250,
  stallMs: 300,
  coolingMs: 10 * 60_000,
  warmingMs: 20 * 60_000,
}

/** The same mechanisms `speed` times as fast. */
export function scaledTiming(speed: number, timing: Timing = defaultTiming): Timing {
  return Object.fromEntries(
    Object.entries(timing).map(([name, ms]) => [name, (ms as number) / speed]),
  ) as unknown as Timing
}
