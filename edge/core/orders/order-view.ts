import type { OrderPhase, UnitState } from '../../journal/orders.ts'
import type { FacingChoice } from './facing-choice.ts'

export interface UnitView {
  lineId: number
  unit: number
  state: UnitState
  bin: number | null
  /** Where it would come from now; only of waiting units. */
  choice: FacingChoice | undefined
}

/** An unfinished order, as decisions see it. Times are the cloud's, as well as the hub knows it. */
export interface OrderView {
  id: number
  phase: OrderPhase
  reservedBin: number | null
  openWhenReady: boolean
  startBy: number
  preparingAt: number
  readyAt: number
  collectingAt: number
  units: readonly UnitView[]
  /** How long a doubtful unit of it may still be seen to fall. */
  settlingMs: number
  /** Of an inherited order: the controllers that may remember something of it have all told. */
  accounted: boolean
}
