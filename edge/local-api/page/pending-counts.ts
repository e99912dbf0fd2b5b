import type { Location } from '../../../protocol/model/location.ts'

/** A count or a restock that the hub has not confirmed. */
export interface PendingCount {
  /** UUID: the hub books it once, even if it is sent several times. */
  id: string
  /** The hub where it was entered. Entries of an older page lack it and are not sent. */
  hub?: number
  what: 'count' | 'restock'
  location: Location
  units: number
  /** The time of entry on the page's clock, milliseconds since the Unix epoch. */
  at: number
  /** The person who entered it, and who must send it; null for the shared token. Absent in entries of an older page. */
  by?: string | null
  /** Why the hub refused it; null while it waits for the hub. */
  problem: string | null
  /** The hub was not reached when it was sent. */
  isLate: boolean
}

/** Result of sending an entry. `not delivered`: the hub was not reached. */
export type Sent = 'confirmed' | 'not delivered' | { refused: string }

export interface PendingOptions {
  /** The stored entries. Another tab of the page may change them at any time. */
  read: () => readonly PendingCount[]
  /** Stores and shows the entries after a change. */
  write: (entries: readonly PendingCount[]) => void
  send: (entry: PendingCount, ageMs: number) => Promise<Sent>
  /** Whether the present login may sign the entry. */
  isMine: (entry: PendingCount) => boolean
  now: () => number
}

/** Stores entries until the hub confirms them. Sends them in the order of entry. */
export class PendingCounts {
  readonly #options: PendingOptions
  #sending: Promise<void> | undefined

  constructor(options: PendingOptions) {
    this.#options = options
  }

  /**
   * Adds an entry and sends the waiting entries. A count replaces the waiting entries of its row. Resolves
   * when sending has ended.
   */
  async enter(entry: Omit<PendingCount, 'at' | 'problem' | 'isLate'>): Promise<void> {
    const { location } = entry
    const { read, write, now } = this.#options
    const others = read().filter(
      (one) => !isSameRow(one.location, location) || (entry.what === 'restock' && one.problem === null),
    )
    write([...others, { ...entry, at: now(), problem: null, isLate: false }])
    // A running transfer may have passed this entry already.
    await this.#sending
    await this.send()
  }

  /** Sends the waiting entries; stops at the first undelivered entry. */
  send(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
    return this.#sending
  }

  /** Deletes the waiting entries of a row. */
  discard(location: Location): void {
    const { read, write } = this.#options
    write(read().filter((one) => !isSameRow(one.location, location)))
  }

  async #sendAll(): Promise<void> {
    const { read, write, send, isMine, now } = this.#options
    for (;;) {
      const entry = read().find((one) => one.problem === null && isMine(one))
      if (!entry) return
      const sent = await send(entry, Math.max(0, now() - entry.at))
      write(read().flatMap((one) => (one.id === entry.id ? after(one, sent) : [one])))
      if (sent === 'not delivered') return
    }
  }
}

function after(entry: PendingCount, sent: Sent): PendingCount[] {
  if (sent === 'confirmed') return []
  return [sent === 'not delivered' ? { ...entry, isLate: true } : { ...entry, problem: sent.refused }]
}

const isSameRow = (one: Location, other: Location): boolean =>
  one.cabinet === other.cabinet && one.shelf === other.shelf && one.row === other.row
