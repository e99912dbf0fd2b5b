import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { LocalState } from '../local-state.ts'
import type { PendingCount } from './pending-counts.ts'

/** Content of the browser's storage for a reload without network. It contains no token and no session. */
interface Kept {
  /** Typed numbers that are not submitted, by row. */
  typed: [row: string, units: number][]
  pending: PendingCount[]
  /** Last known state of the hub. `at`: the browser's clock, milliseconds since the Unix epoch. */
  seen: {
    at: number
    person?: string | null
    hardware: HardwareDescription
    software: string
    state: LocalState
  } | null
}

const KEY = 'larder-hub-page'
const nothing: Kept = { typed: [], pending: [], seen: null }

/** A browser may refuse its storage, or the storage may contain another version's content. */
export function readStored(): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Kept | null
    return { ...nothing, ...kept }
  } catch {
    return nothing
  }
}

export function keep(change: Partial<Kept>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...readStored(), ...change }))
  } catch {
    // The storage is full or forbidden: the entries last only while the page is open.
  }
}
