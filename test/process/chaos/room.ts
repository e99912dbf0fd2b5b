import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import type { HubState } from '../../../simulator/hub-state.ts'
import type { Motion } from '../../invariants/evidence.ts'
import type { HubHealth } from '../../../protocol/model/hub-health.ts'
import type { OrderSummary, FacingStock, UnknownOperation } from '../../../edge/core/summaries.ts'
import type { Plant } from './plant.ts'

/** Answer of the hub's local API. */
export interface LocalState {
  health: HubHealth
  orders: OrderSummary[]
  stock: FacingStock[]
  unknown_operations: UnknownOperation[]
  sync: { phase: string }
}

/** The hub's room for people in it: actions and observations (the simulator), and the hub's own interface. */
export interface Room {
  /** Performs a manual act. Returns false if it is impossible or the simulator is dead at the moment. */
  act(deed: { action: string; target: string }): Promise<boolean>
  state(): Promise<HubState>
  actuations(): Promise<Motion[]>
  hub(): Promise<LocalState>
  /** Calls the hub. Returns false if it refused, failed, or is dead at the moment. */
  atHub(path: string, body?: object): Promise<boolean>
}

const PATIENCE_MS = 90_000

export function roomOf(plant: Plant, clock: Clock): Room {
  const simulator = `${plant.simulatorUrl}/api/hubs/${plant.hubId}`
  const authorization = { Authorization: `Bearer ${plant.hubToken}` }

  async function post(url: string, body: object, headers: Record<string, string>): Promise<boolean> {
    try {
      const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
      await answer.arrayBuffer()
      return answer.ok
    } catch {
      return false
    }
  }

  /** Repeats a read until it is answered: the program may be dead at the moment. */
  async function get<T>(url: string, headers: Record<string, string> = {}): Promise<T> {
    for (const end = clock.monotonic() + PATIENCE_MS; clock.monotonic() < end; await sleep(clock, 250))
      try {
        const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5000) })
        if (answer.ok) return (await answer.json()) as T
      } catch {
        // The program is dead, or is being started.
      }
    throw new Error(`${url} does not answer`)
  }

  return {
    act: (deed) => post(`${simulator}/act`, deed, {}),
    state: () => get(`${simulator}/state`),
    actuations: () => get(`${simulator}/actuations`),
    hub: () => get(`${plant.hubUrl}/api/state`, authorization),
    atHub: (path, body = {}) => post(`${plant.hubUrl}/api${path}`, body, authorization),
  }
}
