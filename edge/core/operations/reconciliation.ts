import type { OperationOutcome } from '../../hardware/controllers.ts'
import type { OperationPhase } from '../../journal/tables.ts'
import type { Action, OperationState } from '../../../protocol/serial/frames.ts'

/**
 * Reconciliation of a controller's memory of operations with the journal (I1), as tables: state of the journal × what
 * the memory says → what to do. `outcomes.ts` and `recovery/controllers.ts` do it.
 */

/**
 * Whose a controller is, by its own word (serial SPEC §8). `own`: this store's, or with the memory that this store knows.
 * `former`: this hub's and this line's, taken over by another store. `nobodys`: it says nothing. `emptied`: it says nothing
 * either, and it is this line's own, which was heard to start again. `foreign`: another hub's, or another line's.
 */
export type Board = 'own' | 'former' | 'nobodys' | 'emptied' | 'foreign'

/** What the journal knows of a controller's memory: `new` where it has not met the controller yet. */
export type Standing = 'new' | 'unreconciled' | 'reconciled'

/** The newest operation in the memory: there is none, the journal has it, or the journal does not know it. */
export type NewestOperation = 'none' | 'known' | 'foreign'

/**
 * `agree`: memory and journal share one history; ask for every outcome that is missing. `import`: take over what the
 * memory holds. `start_over`: this store is a copy of one that went on elsewhere; begin again from the cloud, then import.
 * `take_over`: it becomes this hub's, without its memory; what is open there is then unknown. `refuse`: it is not used.
 */
export type Handshake = 'agree' | 'import' | 'start_over' | 'take_over' | 'refuse'

const all = <H extends Handshake>(handshake: H): Record<NewestOperation, H> => ({
  none: handshake,
  known: handshake,
  foreign: handshake,
})

/**
 * What to do when a controller has come up. The memory of a board of this hub is the better witness where it holds what the
 * journal does not know. Another hub's tells this one nothing, and takes nothing from it.
 */
export const handshakes: Record<Board, Record<Standing, Record<NewestOperation, Handshake>>> = {
  own: {
    // A store that was begun before it met the controller first, and is a copy of that.
    new: { none: 'agree', known: 'agree', foreign: 'start_over' },
    unreconciled: { none: 'agree', known: 'agree', foreign: 'import' },
    reconciled: { none: 'agree', known: 'agree', foreign: 'start_over' },
  },
  former: {
    new: { none: 'agree', known: 'agree', foreign: 'import' },
    unreconciled: { none: 'agree', known: 'agree', foreign: 'import' },
    // This line has had a board of this store: that one comes from another installation that uses the same names.
    reconciled: all('take_over'),
  },
  // A line that has its own board and finds one of nobody may lead into another room, where a hub is being set up.
  nobodys: { new: all('take_over'), unreconciled: all('refuse'), reconciled: all('refuse') },
  emptied: { new: all('take_over'), unreconciled: all('take_over'), reconciled: all('take_over') },
  foreign: { new: all('refuse'), unreconciled: all('refuse'), reconciled: all('refuse') },
}

/**
 * What a controller's word on an operation means. `nothing`: provably nothing moved. `unknown`: nobody can say whether a
 * unit fell, or the motion happened.
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

/**
 * `ignore`: the journal knows as much, or has it from a person. `book`: units fell that the stock does not lack yet.
 * `end`: the motion has ended, and counts for its bin. `free`: nothing moved, it may be tried again. `doubt`: it becomes
 * unknown. `settle`: an unknown outcome has become known.
 */
export type Resolution = 'ignore' | 'book' | 'end' | 'free' | 'doubt' | 'settle'

type Resolutions = Record<OperationPhase, Partial<Record<Verdict, Resolution>>>

/** A unit may be seen to fall late, whatever was believed by then; only a count or a person has the last word. */
const dispenseResolutions: Resolutions = {
  open: { done: 'book', nothing: 'free', unknown: 'doubt' },
  unknown: { done: 'book', nothing: 'settle' },
  done: { done: 'book' },
  nothing: { done: 'book' },
  failed: { done: 'book' },
  settled: {},
}

const motionResolutions: Resolutions = {
  open: { done: 'end', failed: 'end', nothing: 'free', unknown: 'doubt' },
  unknown: { done: 'settle', failed: 'settle' },
  done: {},
  nothing: {},
  failed: {},
  settled: {},
}

/** What the journal does with a verdict on an operation that it holds in this state. */
export const resolve = (action: Action, state: OperationPhase, verdict: Verdict): Resolution =>
  (action === 'dispense' ? dispenseResolutions : motionResolutions)[state][verdict] ?? 'ignore'
