import type { Action } from '../../protocol/serial/frames.ts'
import type { Location } from '../../protocol/model/location.ts'
import type { EndedPhase } from '../journal/tables.ts'

export type BinAction = Exclude<Action, 'dispense'>

/** The hub's next action. `actor.ts` carries it out in the current transaction, and then computes the next step. */
export type Step =
  /** Starts the order in these bins. */
  | { kind: 'prepare'; orderId: string; bins: number[] }
  /** A further bin for an order in preparation. */
  | { kind: 'hold'; orderId: string; bin: number }
  | { kind: 'release'; bin: number }
  /**
   * `commandId`: the command that requested the motion, if any. `isTrial`: the motion tests whether the bin
   * moves again.
   */
  | { kind: 'move'; bin: number; action: BinAction; commandId?: string; isTrial?: true }
  | { kind: 'dispense'; orderId: string; lineId: number; unit: number; location: Location; bin: number }
  /** The unit did not reach its bin, so it is taken from another row. The first dispense stays unknown. */
  | { kind: 'elsewhere'; orderId: string; lineId: number; unit: number }
  /** The unit cannot be dispensed. */
  | { kind: 'short'; orderId: string; lineId: number; unit: number }
  | { kind: 'ready'; orderId: string; bins: number[] }
  /** The bin's door was seen open, and its order is or was ready for the customer. */
  | { kind: 'opened'; bin: number }
  | { kind: 'collecting'; orderId: string }
  /** The order's running operations become unknown. */
  | { kind: 'give_up'; orderId: string }
  /** The order ends. Its running operations become unknown. */
  | { kind: 'end'; orderId: string; phase: EndedPhase; reason: string | null }
  /** A recovering order gets no further information: it is decided by the controllers' memories. */
  | { kind: 'recover'; orderId: string }

/** Nothing to do now; `ms`: milliseconds until time alone may change that. */
export interface Wait {
  kind: 'wait'
  ms: number | undefined
}

/** The shortest of several waits; undefined: without end. */
export function earliest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((ms) => ms !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}

export const wait = (ms?: number): Wait => ({ kind: 'wait', ms })

/** The first step of several decisions, or the shortest wait. */
export function firstOf(decisions: Iterable<Step | Wait>): Step | Wait {
  const waits: (number | undefined)[] = []
  for (const decision of decisions) {
    if (decision.kind !== 'wait') return decision
    waits.push(decision.ms)
  }
  return wait(earliest(waits))
}
