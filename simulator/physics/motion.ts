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
