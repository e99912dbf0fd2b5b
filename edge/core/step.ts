import type { Action } from '../../protocol/serial/frames.ts'
import type { Location } from '../../protocol/model/location.ts'
import type { EndedPhase } from '../journal/tables.ts'

export type BinAction = Exclude<Action, 'dispense'>

/** One thing for the hub to do next. `actor.ts` carries it out in the transaction under way, and asks again. */
export type Step =
  /** The order is begun, in these bins. */
  | { kind: 'prepare'; orderId: string; bins: number[] }
  /** A further bin for an order that is being prepared. */
  | { kind: 'hold'; orderId: string; bin: number }
  | { kind: 'release'; bin: number }
  /** `commandId`: of the command that wants it, if one does. `isTrial`: it shows whether the bin moves again. */
  | { kind: 'move'; bin: number; action: BinAction; commandId?: string; isTrial?: true }
  | { kind: 'dispense'; orderId: string; lineId: number; unit: number; location: Location; bin: number }
  /** The unit did not reach its bin: it is looked for in another row. What became of the dispense stays unknown. */
  | { kind: 'elsewhere'; orderId: string; lineId: number; unit: number }
  /** The unit will not be had. */
  | { kind: 'short'; orderId: string; lineId: number; unit: number }
  | { kind: 'ready'; orderId: string; bins: number[] }
  /** The bin's door was seen open, and its order is (or was) the customer's. */
  | { kind: 'opened'; bin: number }
  | { kind: 'collecting'; orderId: string }
  /** What still runs for the order is given up as unknown. */
  | { kind: 'give_up'; orderId: string }
  /** The order ends. What still runs for it is given up as unknown. */
  | { kind: 'end'; orderId: string; phase: EndedPhase; reason: string | null }
  /** Nothing more will be learned of a recovering order: decides it by what controllers remember. */
  | { kind: 'recover'; orderId: string }

/** Nothing to do now; `ms`: until time alone may change that. */
export interface Wait {
  kind: 'wait'
  ms: number | undefined
}

export const wait = (ms?: number): Wait => ({ kind: 'wait', ms })

/** The first step of several decisions, or the shortest wait. */
export function firstOf(decisions: Iterable<Step | Wait>): Step | Wait {
  let shortest: number | undefined
  for (const decision of decisions) {
    if (decision.kind !== 'wait') return decision
    if (decision.ms !== undefined) shortest = Math.min(shortest ?? decision.ms, decision.ms)
  }
  return wait(shortest)
}
