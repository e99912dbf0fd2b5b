import type { BinView } from '../bins/bin-view.ts'
import type { OrderView } from './order-view.ts'

export interface OrderTimes {
  prepareTimeoutMs: number
  prepareGraceMs: number
  unclaimedTimeoutMs: number
  emptyDebounceMs: number
}

/** What decisions about orders look at. `now` is the cloud's time, as well as the hub knows it. */
export interface OrderWorld {
  now: number
  /** False until the hub holds a snapshot of the cloud: nothing is begun before. */
  live: boolean
  /** For how long the hub still waits for controllers that it has not met since its start. */
  musterMs: number
  /** In the order of their arrival; unfinished ones only. */
  orders: readonly OrderView[]
  bins: readonly BinView[]
  times: OrderTimes
}
