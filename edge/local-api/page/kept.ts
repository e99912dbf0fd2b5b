import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { LocalState } from './local-state.ts'
import type { PendingCount } from './pending-counts.ts'

/** What the browser keeps, so that a reload without network loses nothing. No token and no session is in it. */
interface Kept {
  /** Numbers that were typed and not entered, by row. */
  typed: [row: string, units: number][]
  pending: PendingCount[]
  /** The hub as it was last seen. `at`: the browser's clock, milliseconds since the Unix epoch. */
  seen: { at: number; hardware: HardwareDescription; software: string; state: LocalState } | null
}

const KEY = 'larder-hub-page'
const nothing: Kept = { typed: [], pending: [], seen: null }

/** A browser may refuse its storage, or have another version's content in it. */
export function readKept(): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Kept | null
    return { ...nothing, ...kept }
  } catch {
    return nothing
  }
}

export function keep(change: Partial<Kept>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...readKept(), ...change }))
  } catch {
    // A full or forbidden storage: the page keeps it as long as it is open.
  }
}

export function forgetKept(): void {
  try {
    localStorage.removeItem(KEY)
  } catch {
    // Nothing was kept.
  }
}
