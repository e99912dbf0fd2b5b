import type { OperationOutcome } from '../../hardware/controller-events.ts'
import type { OperationPhase } from '../../journal/tables.ts'
import type { Action, OperationState } from '../../../protocol/serial/frames.ts'

/**
 * Reconciliation of a controller's memory of operations with the journal (I1), as tables: journal state ×
 * memory state → action. `outcomes.ts` and `recovery/controllers.ts` perform the actions.
 */

/**
 * The owner of a controller board, as the board reports it (serial SPEC §8).
 *
 * - `own`: this store, or a memory that this store knows.
 * - `former`: this hub and line, but another store took it over.
 * - `moved`: this hub and line, before the hub moved from another cell. It left no operation open.
 * - `nobodys`: the board reports no owner.
 * - `emptied`: no owner, but it is this line's own board: its restart was reported on the open line.
 * - `foreign`: another hub or another line.
 */
export type Board = 'own' | 'former' | 'moved' | 'nobodys' | 'emptied' | 'foreign'

/** The journal's state for a controller: `new` if it has never connected to this store. */
export type Progress = 'new' | 'unreconciled' | 'reconciled'

/** The newest operation in the memory: none, in the journal (`known`), or not in the journal (`foreign`). */
export type NewestOperation = 'none' | 'known' | 'foreign'

/**
 * - `agree`: memory and journal share one history; query every missing outcome.
 * - `import`: import the memory's operations.
 * - `start_over`: this store is a copy of a store that continued elsewhere; restart from the cloud, then
 *   import.
 * - `take_over`: assign the board to this hub without its memory; open operations become unknown.
 * - `refuse`: do not use the board.
 */
type Handshake = 'agree' | 'import' | 'start_over' | 'take_over' | 'refuse'

const all = <H extends Handshake>(handshake: H): Record<NewestOperation, H> => ({
  none: handshake,
  known: handshake,
  foreign: handshake,
})

/**
 * The action when a controller has connected. If the memory of this hub's board contains operations that the
 * journal does not have, the memory is right. The hub exchanges nothing with another hub's board.
 */
export const handshakes: Record<Board, Record<Progress, Record<NewestOperation, Handshake>>> = {
  own: {
    // This store was created before the controller first connected, and is a copy from that time.
    new: { none: 'agree', known: 'agree', foreign: 'start_over' },
    unreconciled: { none: 'agree', known: 'agree', foreign: 'import' },
    reconciled: { none: 'agree', known: 'agree', foreign: 'start_over' },
  },
  former: {
    new: { none: 'agree', known: 'agree', foreign: 'import' },
    unreconciled: { none: 'agree', known: 'agree', foreign: 'import' },
    // This line already has a board of this store. The board comes from another installation that uses the
    // same names.
    reconciled: all('take_over'),
  },
  moved: { new: all('take_over'), unreconciled: all('refuse'), reconciled: all('refuse') },
  // The line has its own board, but a board without an owner answers. The line may lead into another room,
  // where a hub is being set up.
  nobodys: { new: all('take_over'), unreconciled: all('refuse'), reconciled: all('refuse') },
  emptied: { new: all('take_over'), unreconciled: all('take_over'), reconciled: all('take_over') },
  foreign: { new: all('refuse'), unreconciled: all('refuse'), reconciled: all('refuse') },
}

/**
 * The meaning of a controller's report on an operation. `nothing`: provably nothing moved. `unknown`: there
 * is no evidence whether a unit fell or the motion happened.
 */
export type Verdict = 'open' | 'done' | 'failed' | 'nothing' | 'unknown'

type Judge = (outcome: Pick<OperationOutcome, 'moved' | 'drops'>, sameMemory: boolean) => Verdict

/** A dispense is judged by its drops. A unit that was seen to fall has left, even if the motion failed. */
const dispense: Record<OperationState, Judge> = {
  running: () => 'open',
  done: ({ drops }) => (drops > 0 ? 'done' : 'unknown'),
  failed: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  interrupted: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),
  forgotten: ({ drops }) => (drops > 0 ? 'done' : 'unknown'),
  // `none` proves something only about the memory that stored operations when this operation was sent.
  none: (_, sameMemory) => (sameMemory ? 'nothing' : 'unknown'),
}

/** A door or lift is where its sensors report it, whatever the motion's outcome was. */
const motion: Record<OperationState, Judge> = {
  running: () => 'open',
  done: () => 'done',
  failed: () => 'failed',
  interrupted: () => 'failed',
  forgotten: () => 'unknown',
  none: (_, sameMemory) => (sameMemory ? 'nothing' : 'unknown'),
}

/** Judges an outcome. `sameMemory`: the controller still has the memory that it had when the intent was journaled. */
export function judge(
  action: Action,
  outcome: Pick<OperationOutcome, 'state' | 'moved' | 'drops'>,
  sameMemory: boolean,
): Verdict {
  return (action === 'dispense' ? dispense : motion)[outcome.state](outcome, sameMemory)
}

/**
 * - `ignore`: the journal has this outcome already, or a person resolved it.
 * - `book`: units fell that the stock still contains.
 * - `end`: the motion has ended, and counts for its bin.
 * - `free`: nothing moved; the unit may be tried again.
 * - `doubt`: the outcome becomes unknown.
 * - `settle`: an unknown outcome has become known.
 */
type Resolution = 'ignore' | 'book' | 'end' | 'free' | 'doubt' | 'settle'

type Resolutions = Record<OperationPhase, Partial<Record<Verdict, Resolution>>>

/** A unit may be seen to fall late, after any other verdict. Only a count or a person is final. */
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

/** The journal's action for a verdict on an operation in this state. */
export const resolve = (action: Action, state: OperationPhase, verdict: Verdict): Resolution =>
  (action === 'dispense' ? dispenseResolutions : motionResolutions)[state][verdict] ?? 'ignore'
