import type { Fault } from './faults/faults.ts'
import type { RowState } from './physics/world-state.ts'

/** `GET /api/hubs/{id}/state`: the truth, sensors and their faults aside. */
export interface HubState {
  hub_id: number
  time: string
  /** `sessions`: how many hosts have begun; one more after each connection that was made anew. */
  controllers: { controller: string; powered: boolean; connected: boolean; sessions: number; port: string }[]
  bins: { bin: string; door: string; lift: string; units: number; contents: (number | null)[] }[]
  rows: RowState[]
  fridges: { fridge: string; celsius: number }[]
  doors: { door: string; open: boolean; locked: boolean }[]
  gpio: Record<string, number>
  faults: Fault[]
  last_actuation: number
}
