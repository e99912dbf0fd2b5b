/** How a motor stopped without `stop`. */
type MotionEnd = 'arrived' | 'stalled' | 'obstructed'

/** A motor that is switched on. */
export interface Motion {
  /** Switches the motor off. After the motion's end it does nothing. */
  stop(): void
  /** Whether the encoder has counted. */
  moved(): boolean
}

/** `onEnd` is called at most once, after the call that started the motor has returned, and not after `stop`. */
export type OnMotionEnd = (end: MotionEnd) => void

/** The durations of the mechanisms, in milliseconds. */
export interface Timing {
  doorMs: number
  liftMs: number
  /** One turn of a row's motor. */
  turnMs: number
  /** From the shelf past the chute's sensor. */
  fallMs: number
  /** Time until a blocked motor is noticed. */
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

/** The same mechanisms, `speed` times faster. */
export function scaledTiming(speed: number, timing: Timing = defaultTiming): Timing {
  return Object.fromEntries(
    Object.entries(timing).map(([name, ms]) => [name, (ms as number) / speed]),
  ) as unknown as Timing
}
