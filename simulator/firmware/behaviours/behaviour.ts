import type { Action, Failure, FrameBody, Refusal } from '../../../protocol/serial/frames.ts'

export type Command = FrameBody<'CMD'>
/** What a device senses, as fields of its EVT. */
export type Sensed = Omit<FrameBody<'EVT'>, 'ev' | 'dev' | 'drop' | 'op'>

/** An operation under way, as the device that carries it out sees it. */
export interface Run {
  readonly command: Command
  /** Falls that the sensor has seen since the operation began. */
  drops(): number
  /** The motor is off: its time is measured, and the maximum duration no longer counts. */
  motorOff(): void
  /** Ends the operation. Later calls do nothing. */
  finish(outcome: { why?: Failure; moved: boolean }): void
}

/** What one kind of device can do. The controller knows nothing else of it. */
export interface Behaviour {
  readonly device: string
  readonly actions: readonly Action[]
  /** Why the command cannot be carried out now. */
  refusal(command: Command): Refusal | undefined
  /** The device stands already where the command would bring it. */
  isSettled(command: Command): boolean
  /** Switches the motor on. Returns what takes its power away. */
  start(run: Run): () => void
  sensed(): Sensed
  /** Calls `listener` when `sensed` may have changed; returns its removal. */
  onSense(listener: () => void): () => void
}
