import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { BrowserStorage, type OpenStorage } from '../../../protocol/ui/browser-storage.ts'
import type { LocalState } from '../local-state.ts'
import type { PendingCount } from './pending-counts.ts'

/** Last known state of a hub. `at`: the browser's clock, milliseconds since the Unix epoch. */
interface Seen {
  at: number
  person?: string | null
  hardware: HardwareDescription
  software: string
  state: LocalState
}

/** Content of the browser's storage about one hub, for a reload without network. It contains no token and no session. */
interface Kept {
  /** Typed numbers that are not submitted, by row. */
  typed: [row: string, units: number][]
  pending: PendingCount[]
  seen: Seen | null
}

const PREFIX = 'larder-hub-page'
const nothing: Kept = { typed: [], pending: [], seen: null }

/**
 * The browser's storage. Each hub has its own content, because a telephone meets several hubs at one address. Only an
 * older page has stored content without a hub. Several tabs of the page share the content, so each change starts from
 * what is stored.
 */
export class StoredHubs {
  readonly #storage: BrowserStorage
  readonly #parsed = new Map<string, { text: string; kept: Kept }>()

  constructor(open: () => OpenStorage) {
    this.#storage = new BrowserStorage(open)
  }

  of(hub: number): Kept {
    return this.#read(keyOf(hub))
  }

  keep(hub: number, change: Partial<Kept>): void {
    this.#write(keyOf(hub), change)
  }

  /** The last known state of the hub that this browser has seen last. */
  lastSeen(): Seen | null {
    const all = this.#keys().flatMap((key) => this.#read(key).seen ?? [])
    return all.toSorted((one, other) => other.at - one.at)[0] ?? null
  }

  forgetSeen(): void {
    for (const key of this.#keys()) this.#write(key, { seen: null })
  }

  /** The entries of other hubs. */
  entriesOfOthers(hub: number): PendingCount[] {
    const others = this.#keys().filter((key) => key !== keyOf(hub))
    return others.flatMap((key) => this.#read(key).pending)
  }

  /** Deletes an entry of another hub. */
  discard(id: string): void {
    for (const key of this.#keys()) {
      const { pending } = this.#read(key)
      const left = pending.filter((one) => one.id !== id)
      if (left.length < pending.length) this.#write(key, { pending: left })
    }
  }

  #keys(): string[] {
    return this.#storage.names().filter((key) => key.startsWith(PREFIX))
  }

  /** The storage may contain another version's content. Parsed once: a page reads it with each click. */
  #read(key: string): Kept {
    const text = this.#storage.getItem(key) ?? 'null'
    const last = this.#parsed.get(key)
    const kept = last?.text === text ? last.kept : parsed(text)
    this.#parsed.set(key, { text, kept })
    return kept
  }

  #write(key: string, change: Partial<Kept>): void {
    this.#storage.setItem(key, JSON.stringify({ ...this.#read(key), ...change }))
  }
}

const keyOf = (hub: number): string => `${PREFIX}-${hub}`

function parsed(text: string): Kept {
  try {
    return { ...nothing, ...(JSON.parse(text) as Kept | null) }
  } catch {
    return nothing
  }
}
