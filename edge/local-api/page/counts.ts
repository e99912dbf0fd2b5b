import { computed, effect, type Signal, signal } from '@preact/signals'
import type { Location } from '../../../protocol/model/location.ts'
import { call, CallError } from '../../../protocol/ui/call-program.ts'
import { pause } from '../../../protocol/ui/live.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { PendingCounts, type PendingCount, type Sent } from './pending-counts.ts'
import { hardware, hubId, isConnected, leave, login, person, software, state, storedHubs } from './store.ts'
import { causeOf } from './texts.ts'

export type Facing = NonNullable<typeof state.value>['stock'][number]
/** `1/2/3`: cabinet, shelf, row. */
export const rowKey = ({ cabinet, shelf, row }: Location): string => `${cabinet}/${shelf}/${row}`
export const keyOf = ({ location }: Facing): string => rowKey(location)

/** The chosen row: its shelf opens, and its field gets the focus. */
export const wantedRow = signal<string | null>(null)
export const openRow = (key: string): void => void (wantedRow.value = key)

/** Entries of a person at one hub. */
interface Entries {
  hub: number
  /** Typed numbers that are not submitted yet, by row. */
  typed: Signal<ReadonlyMap<string, number>>
  /** The rows that a person has counted or filled since the page was opened. */
  entered: Signal<ReadonlySet<string>>
  /** Entries that the hub has not confirmed. */
  pending: Signal<readonly PendingCount[]>
  counts: PendingCounts
}

/** The entries at this hub. They never reach another hub that answers at the same address. */
const here = computed(() => (hubId.value === null ? null : entriesAt(hubId.value)))
export const typed = computed(() => here.value?.typed.value ?? new Map<string, number>())
export const entered = computed(() => here.value?.entered.value ?? new Set<string>())
export const pending = computed(() => here.value?.pending.value ?? [])

function entriesAt(hub: number): Entries {
  const pending = signal<readonly PendingCount[]>(storedHubs.of(hub).pending)
  const counts = new PendingCounts({
    read: () => storedHubs.of(hub).pending,
    write(entries) {
      storedHubs.keep(hub, { pending: [...entries] })
      pending.value = entries
    },
    send,
    isMine: ({ by }) => by === undefined || by === person.value,
    now: epochMs,
  })
  return {
    hub,
    typed: signal(new Map(storedHubs.of(hub).typed)),
    entered: signal(new Set()),
    pending,
    counts,
  }
}

/** The typed numbers as stored. An empty field is not stored, and belongs to this tab. */
const typedNow = ({ hub, typed }: Entries): Map<string, number> =>
  new Map([...storedHubs.of(hub).typed, ...[...typed.peek()].filter(([, units]) => Number.isNaN(units))])

export function setTyped(key: string, units: number | undefined): void {
  const entries = here.peek()!
  const next = typedNow(entries)
  if (units === undefined) next.delete(key)
  else next.set(key, units)
  entries.typed.value = next
  storedHubs.keep(entries.hub, { typed: [...next].filter(([, number]) => !Number.isNaN(number)) })
}

/** Another tab of the page has changed the entries. */
addEventListener('storage', () => {
  const entries = here.peek()
  if (!entries) return
  const { pending } = storedHubs.of(entries.hub)
  if (JSON.stringify(pending) !== JSON.stringify(entries.pending.peek())) entries.pending.value = pending
  entries.typed.value = typedNow(entries)
})

async function send({ id, hub, what, location, units }: PendingCount, ageMs: number): Promise<Sent> {
  try {
    const age = ageMs > AGE_FROM_MS && { age_ms: Math.round(ageMs) }
    await call('POST', `api/stock/${what}`, { location, units, id, hub_id: hub, ...age }, SEND_MS)
    return 'confirmed'
  } catch (error) {
    // The hub refused the entry: a person must decide. Other failures may pass.
    if (error instanceof CallError && (error.status === 409 || error.status === 422 || error.status === 404))
      return { refused: causeOf(error) }
    if (error instanceof CallError && error.status === 401) leave()
    return 'not delivered'
  }
}

/** A younger entry is sent without its age. */
const AGE_FROM_MS = 2000
const AGAIN_MS = 5000
/** The hub books an entry at once. An entry without an answer must not delay later ones. */
const SEND_MS = 10_000

const newId = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Submits a count or a restock: it is stored until the hub confirms it. */
export function enterUnits(what: 'count' | 'restock', location: Location, units: number): Promise<void> {
  const { hub, entered, counts } = here.peek()!
  entered.value = new Set([...entered.value, rowKey(location)])
  return counts.enter({ id: newId(), hub, what, location, units, by: person.value })
}

export const discardEntry = (location: Location): void => here.peek()!.counts.discard(location)

/** Entries at other hubs, which wait until the page is opened there again. */
export const ofOthers = signal<readonly PendingCount[]>([])
effect(() => {
  if (hubId.value !== null) ofOthers.value = storedHubs.entriesOfOthers(hubId.value)
})
export function discardEntryOfOther(id: string): void {
  storedHubs.discard(id)
  ofOthers.value = ofOthers.value.filter((one) => one.id !== id)
}

/** Waiting entries are sent again: periodically, and at once when the hub is connected again. */
let isTrying = false
effect(() => {
  const waits = pending.value.some(({ problem }) => problem === null)
  if (!waits || login.value !== 'there') return
  if (isConnected.value) void here.value!.counts.send()
  if (!isTrying) void tryAgain()
})
async function tryAgain(): Promise<void> {
  isTrying = true
  while (pending.value.some(({ problem }) => problem === null)) {
    await pause(AGAIN_MS)
    if (login.value === 'there') await here.peek()!.counts.send()
  }
  isTrying = false
}

/** Stores the last known state of the hub for a reload without network, at most every few seconds. */
let keptAt = -Infinity
effect(() => {
  const [is, description] = [state.value, hardware.value]
  if (!is || is.hub_id !== description?.hubId || !isConnected.value) return
  if (performance.now() - keptAt < AGAIN_MS) return
  keptAt = performance.now()
  const seen = { person: person.value, hardware: description, software: software.value, state: is }
  storedHubs.keep(description.hubId, { seen: { at: epochMs(), ...seen } })
})
