import type { BinAction } from '../step.ts'
import { isBusy, type BinView } from './bin-view.ts'

/** Why a bin must not move now, by somebody's command. */
export type Hindrance = 'offline' | 'interlock'

type Rule = (bin: BinView) => boolean

const isFilling: Rule = (bin) => bin.phase === 'preparing'
const isWaiting: Rule = (bin) => bin.phase === 'ready' || bin.phase === 'collecting'
/** No lift motion with its door open, nor with a door of which nobody knows. */
const isDoorNotClosed: Rule = (bin) => bin.door !== 'closed'
const isLiftMoving: Rule = (bin) => bin.lift === 'moving'

/** What forbids each motion, beyond what forbids them all: an operation under way. */
const forbidden: Record<BinAction, readonly Rule[]> = {
  // An open bin is none to dispense into: while an order is being filled in, its door stays closed.
  open_door: [isFilling, isLiftMoving],
  close_door: [isFilling, isLiftMoving],
  raise_lift: [isFilling, isDoorNotClosed],
  // What waits for its customer is not taken down again.
  lower_lift: [isFilling, isWaiting, isDoorNotClosed],
}

/** Whether a command may move the bin now. */
export function hindrance(action: BinAction, bin: BinView): Hindrance | undefined {
  if (!bin.up) return 'offline'
  if (isBusy(bin) || forbidden[action].some((rule) => rule(bin))) return 'interlock'
  return undefined
}
