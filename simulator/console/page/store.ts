import { batch, computed, effect, signal } from '@preact/signals'
import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { call, follow, type Live, pause } from '../../../protocol/ui/live.ts'
import type { Act } from '../../physics/world-state.ts'
import type { Run } from '../../scenarios/results.ts'
import type { WireEntry } from '../../wire-entry.ts'
import { type LiveState, pictureOf } from './picture-of.ts'

/** One line about a hub (`GET /api/live`). */
export interface Summary {
  hub_id: number
  powered: number
  connected: number
  controllers: number
  faults: number
  moving: number
  open: string[]
  last_actuation: number
}

const KEPT_ACTS = 500
const KEPT_WIRE = 5000

export interface FleetState {
  hubs: Record<string, Summary>
  recording: { hub_id: number; steps: number } | null
  /** The last runs of scenarios, the newest last. */
  runs: Run[]
}

export const fleet = follow<FleetState>('api/live')
export const recording = computed(() => fleet.state.value?.recording ?? null)
export const runs = computed(() => fleet.state.value?.runs ?? [])
export const hubs = computed(() => Object.values(fleet.state.value?.hubs ?? {}))
export const hubId = signal<number | null>(null)
export const hardware = signal<HardwareDescription | null>(null)
export const selected = signal<string | null>(null)
/** The physical events, the newest last. */
export const acts = signal<readonly Act[]>([])
export const wire = signal<readonly WireEntry[]>([])
/** Number of lines, by controller. */
const traffic = signal<ReadonlyMap<string, number>>(new Map())
const live = signal<Live<LiveState> | null>(null)

export const state = computed(() => live.value?.state.value ?? null)
export const isConnected = computed(() => live.value?.isConnected.value ?? false)
export const picture = computed(() =>
  hardware.value && state.value ? pictureOf(hardware.value, state.value, traffic.value) : null,
)

/** New lines that are not shown yet: the page is drawn only twice a second. */
let arrived: WireEntry[] = []
const DRAW_MS = 500

function takeWire(entries: WireEntry[]): void {
  arrived.push(...entries)
  if (arrived.length > entries.length || entries.length === 0) return
  void pause(DRAW_MS).then(() => {
    const all = arrived
    arrived = []
    showWire(all)
  })
}

function showWire(entries: readonly WireEntry[]): void {
  wire.value = [...wire.value, ...entries].slice(-KEPT_WIRE)
  const counts = new Map(traffic.value)
  for (const entry of entries)
    if (entry.kind === 'frame') counts.set(entry.controller, (counts.get(entry.controller) ?? 0) + 1)
  traffic.value = counts
}

/** Selects a hub and reads everything that is stored about it. */
export function open(id: number): void {
  live.peek()?.close()
  batch(() => {
    hubId.value = id
    acts.value = []
    wire.value = []
    arrived = []
    hardware.value = null
    live.value = follow<LiveState>(`api/hubs/${id}/live`, {
      // After a reconnection both begin again; known entries are skipped.
      acts: (data) => {
        const known = acts.value.at(-1)?.n ?? 0
        acts.value = [...acts.value, ...(data as Act[]).filter(({ n }) => n > known)].slice(-KEPT_ACTS)
      },
      wire: (data) => {
        const known = arrived.at(-1)?.n ?? wire.value.at(-1)?.n ?? 0
        takeWire((data as WireEntry[]).filter(({ n }) => n > known))
      },
      // The hub was reset or removed. It is requested until the fleet's stream reports its removal.
      gone: () => open(id),
    })
  })
  void call<{ hardware: HardwareDescription }>('GET', `api/hubs/${id}`).then(
    (answer) => void (hubId.value === id && (hardware.value = answer.hardware)),
    () => {},
  )
}

/** Calls the interface of the selected hub. */
export const ask = <T>(method: string, path: string, body?: object): Promise<T> =>
  call<T>(method, `api/hubs/${hubId.value}${path}`, body)

/** Either of two streams may report first that a hub is gone. */
effect(() => {
  const all = hubs.value
  if (all.some(({ hub_id }) => hub_id === hubId.value)) return
  if (all[0]) return open(all[0].hub_id)
  live.peek()?.close()
  hubId.value = null
})
