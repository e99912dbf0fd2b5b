import { batch, computed, effect, signal } from '@preact/signals'
import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { call } from '../../../protocol/ui/call-program.ts'
import { follow, type Live, pause } from '../../../protocol/ui/live.ts'
import type { Act } from '../../physics/world-state.ts'
import type { Run } from '../../scenarios/results.ts'
import type { WireEntry } from '../../wire-entry.ts'
import type { HubPicture, PictureCabinet, PictureDoor } from '../../../protocol/ui/picture-model.ts'
import type { HubState } from '../../hub-state.ts'

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

/** Number of the start of a hub whose entries are shown: another hub, or the same one after a restart. */
export const shownStart = signal(0)

function forget(): void {
  batch(() => {
    acts.value = []
    wire.value = []
    arrived = []
    traffic.value = new Map()
    shownStart.value += 1
  })
}

/** Selects a hub and reads everything that is stored about it. */
export function open(id: number): void {
  live.peek()?.close()
  batch(() => {
    hubId.value = id
    forget()
    hardware.value = null
    let startedAt: number | undefined
    live.value = follow<LiveState>(`api/hubs/${id}/live`, {
      state: (data) => {
        const { started_at } = data as LiveState
        if (startedAt !== undefined && startedAt !== started_at) forget()
        startedAt = started_at
      },
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

/** The state of a simulated hub without the time, which differs at each poll. */
type LiveState = Omit<HubState, 'time'> & { started_at: number }

/** The picture of a simulated hub: its true state, whatever its sensors report. */
function pictureOf(
  hardware: HardwareDescription,
  state: LiveState,
  traffic: ReadonlyMap<string, number>,
): HubPicture {
  const faults = new Map<string, string[]>()
  for (const { type, target } of state.faults)
    if (target !== null) faults.set(target, [...(faults.get(target) ?? []), type])
  const troubleOf = (id: string): string | null => {
    const names = faults.get(id)
    return names ? `Fault: ${names.join(', ')}` : null
  }
  const door = ({ door: id, open, locked }: HubState['doors'][number]): PictureDoor => ({
    id,
    open,
    locked,
    trouble: troubleOf(id),
  })
  const main = state.doors.find((one) => one.door === 'main')
  return {
    bins: state.bins.map(({ bin: id, door: position, lift, units }) => ({
      id,
      number: numberOf(id),
      door: position,
      lift,
      units,
      occupied: units > 0,
      note: null,
      trouble: troubleOf(id),
    })),
    cabinets: cabinetsOf(state, troubleOf),
    fridges: state.fridges.map(({ fridge: id, celsius }) => ({
      id,
      number: numberOf(id),
      celsius,
      trouble: troubleOf(id),
      doors: state.doors.filter((one) => one.door.startsWith(`fridge_${numberOf(id)}_`)).map(door),
    })),
    main: main ? door(main) : null,
    controllers: state.controllers.map(({ controller: id, powered, connected }) => ({
      id,
      powered,
      connected,
      devices: hardware.controllers
        .filter((one) => one.id === id)
        .flatMap(({ devices }) => devices.map(({ kind, number }) => `${kind}-${number}`)),
      traffic: traffic.get(id) ?? 0,
      trouble: troubleOf(id) ?? (powered ? null : 'It has no power'),
    })),
  }
}

const numberOf = (id: string): number => Number(id.slice(id.indexOf('-') + 1))

function cabinetsOf({ rows }: LiveState, troubleOf: (id: string) => string | null): PictureCabinet[] {
  const cabinets = new Map<number, PictureCabinet>()
  for (const { cabinet, shelf, row, units, depth, product_id } of rows) {
    const id = `cabinet-${cabinet}`
    const one = cabinets.get(cabinet) ?? { id, number: cabinet, shelves: [], trouble: troubleOf(id) }
    cabinets.set(cabinet, one)
    let board = one.shelves.find((other) => other.shelf === shelf)
    if (!board) one.shelves.push((board = { shelf, rows: [] }))
    const product = product_id === null ? null : `product ${product_id}`
    board.rows.push({ shelf, row, units, depth, product, blocked: null })
  }
  return [...cabinets.values()]
}
