import type { Action, OperationState } from '../../../protocol/serial/frames.ts'
import type { OperationOutcome } from '../../hardware/controllers.ts'

/**
 * What a controller's word on an operation means for the hub's books (I1). `nothing`: provably nothing moved. `unknown`:
 * nobody can say whether a unit fell, or the motion happened.
 */
export type Verdict = 'open' | 'done' | 'failed' | 'nothing' | 'unknown'

type Judge = (outcome: Pick<OperationOutcome, 'moved' | 'drops'>, sameMemory: boolean) => Verdict

/** A dispense is judged by what fell: its motion may have failed in any way, the unit that was seen to fall has left. */
const dispense: Record<OperationState, Judge> = {
  running: () => 'open',
  done: ({ drops }) => (drops > 0 ? 'done' : 'unknown'),
  failed: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  interrupted: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  forgotten: ({ drops }) => (drops > 0 ? 'done' : 'unknown'),
  // "Never held" proves something about the memory that held operations when this one was sent, and no other.
  none: (_, sameMemory) => (sameMemory ? 'nothing' : 'unknown'),
}

/** A door or lift stands where its sensors say, whatever became of the motion. */
const motion: Record<OperationState, Judge> = {
  running: () => 'open',
  done: () => 'done',
  failed: () => 'failed',
  interrupted: () => 'failed',
  forgotten: () => 'unknown',
  none: (_, sameMemory) => (sameMemory ? 'nothing' : 'unknown'),
}

/** Judges an outcome. `sameMemory`: the controller's memory is the one that it had when the intent was journaled. */
export function judge(
  action: Action,
  outcome: Pick<OperationOutcome, 'state' | 'moved' | 'drops'>,
  sameMemory: boolean,
): Verdict {
  return (action === 'dispense' ? dispense : motion)[outcome.state](outcome, sameMemory)
}

/** Why a dispense came to nothing without having been tried: these do not count as tries. */
export const NEVER_SENT = 'never'
