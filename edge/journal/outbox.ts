import type { HubEntry, TelemetryEntry, State } from '../../protocol/mqtt/hub-entries.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { defaultOutboxSettings, type OutboxSettings } from '../../protocol/settings/hub-limits.ts'
import { StorageError } from './storage-error.ts'
import type { Store } from './store.ts'
import { binSubject, cabinetSubject, fridgeSubject, rowSubject } from '../../protocol/model/subject.ts'

/** `ledger` is never dropped (I4); `telemetry` overwrites its oldest entries. */
export type OutboxStream = 'ledger' | 'telemetry'

/** Consecutive entries to send. Bodies are JSON text and are spliced into the batch unchanged. */
export interface OutboxSlice {
  entries: { tag: number; body: string }[]
  /** The tag of the entry before the first entry. */
  previousTag: number
  /** The oldest stored entry. */
  oldest: number
}

/** The outbox, whatever stores its entries: tests have one without a journal. */
export type Outbox = Pick<JournalOutbox, keyof JournalOutbox>

const streams = ['ledger', 'telemetry'] as const satisfies readonly OutboxStream[]

const tagOf = (bytes: Uint8Array): number => new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0)

const parsedRow = ({ seq, body }: { seq: number; body: string }) => ({
  seq,
  entry: JSON.parse(body) as HubEntry,
})

/** The outbox, in the tables `outbox_ledger`, `outbox_telemetry`, `stream_positions` and `ledger_epochs`. */
export class JournalOutbox {
  readonly #store: Store
  readonly #random: Random
  readonly #settings: OutboxSettings
  readonly #statements
  readonly #tables
  readonly #positions: Record<OutboxStream, SenderPosition>
  readonly #listeners: ((stream: OutboxStream) => void)[] = []
  readonly #telemetry: TelemetryEntry[] = []
  /** Sequence number of the last acknowledged telemetry entry; the next write deletes through it. */
  #telemetryTaken = 0
  /** Sequence number of the last ledger entry that may have been sent. Entries of earlier processes count as sent. */
  #sentThrough: number

  constructor(
    store: Store,
    { random }: { random: Random },
    settings: OutboxSettings = defaultOutboxSettings,
  ) {
    this.#store = store
    this.#random = random
    this.#settings = settings
    this.#statements = statementsOf(store)
    this.#tables = { ledger: tableOf(store, 'ledger'), telemetry: tableOf(store, 'telemetry') }
    store.transact(() => {
      for (const stream of streams)
        if (this.#statements.position.get(stream) === undefined) {
          const epoch = this.#mintEpoch()
          this.#statements.create.run(stream, epoch)
          if (stream === 'ledger') this.#statements.learnEpoch.run(epoch)
        }
    })
    this.#positions = { ledger: this.#load('ledger'), telemetry: this.#load('telemetry') }
    this.#sentThrough = this.#positions.ledger.last
  }

  /**
   * Adds an entry. Ledger: in the current transaction, or its own. Telemetry: in memory until `flush`. A
   * state or alarm in the ledger replaces an earlier entry of the same subject that was never read. So a
   * sensor that changes constantly while the cloud is away needs no more space than a single change.
   */
  append(stream: 'ledger', body: HubEntry): void
  append(stream: 'telemetry', body: TelemetryEntry): void
  append(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
    if (stream === 'telemetry') {
      this.#telemetry.push(body as TelemetryEntry)
      if (this.#telemetry.length > this.#settings.telemetryEntries) this.#telemetry.shift()
      return
    }
    this.#store.transact(() => {
      this.#replace(body as HubEntry)
      this.#insert(stream, body)
      this.#announce(stream)
    })
  }

  position(stream: OutboxStream): SenderPosition {
    return this.#positions[stream]
  }

  /**
   * The entries `first` … `first + count - 1`, or fewer if there are no more. They count as sent, so they are
   * no longer replaced.
   */
  read(stream: OutboxStream, first: number, count: number): OutboxSlice {
    const rows = this.#tables[stream].read.all(first, count)
    if (stream === 'ledger') this.#sentThrough = Math.max(this.#sentThrough, first + rows.length - 1)
    return {
      entries: rows.map(([tag, body]) => ({ tag, body })),
      previousTag: this.tagAt(stream, first - 1) ?? 0,
      oldest: this.#positions[stream].base + 1,
    }
  }

  /** The tag of entry `seq`, if the entry is stored or is the last forgotten entry. */
  tagAt(stream: OutboxStream, seq: number): number | undefined {
    const { base, baseTag } = this.#positions[stream]
    if (seq <= base) return seq === base ? baseTag : undefined
    return this.#tables[stream].tag.get(seq)
  }

  /**
   * Deletes entries through `through`. Only for entries that the cloud acknowledged after its commit (I4).
   *
   * - If the disk is full, the entries stay until the next acknowledgement.
   * - Telemetry is deleted with the next write. Ledger entries are deleted at once: otherwise a store
   *   restored from a copy would report them again under its new epoch.
   */
  forget(stream: OutboxStream, through: number): void {
    if (stream === 'ledger') this.#ifRoom(() => this.#removeThrough(stream, through))
    else this.#telemetryTaken = Math.max(this.#telemetryTaken, through)
  }

  /**
   * Starts a new epoch. It begins with the entries `first`. The unacknowledged entries follow in their order,
   * without snapshots, which are outdated. For the ledger, the caller appends the next snapshot in the same
   * transaction, or none if no snapshot is allowed.
   */
  newEpoch(stream: OutboxStream, first: readonly HubEntry[] = []): void {
    const { restart, learnEpoch } = this.#statements
    const { insert, renumber, makePositive } = this.#tables[stream]
    this.#store.transact(() => {
      if (stream === 'telemetry') this.#removeThrough(stream, this.#telemetryTaken)
      else this.#tables.ledger.removeKind.run('snapshot' satisfies HubEntry['kind'])
      const epoch = this.#mintEpoch()
      renumber.run(first.length)
      makePositive.run()
      for (const [index, body] of first.entries())
        insert.run(index + 1, this.#mintTag(), JSON.stringify(body))
      restart.run(epoch, stream)
      if (stream === 'ledger') learnEpoch.run(epoch)
      this.#move(stream, this.#load(stream))
      this.#restartNumbers(stream)
      this.#announce(stream)
    })
  }

  /** Nothing of the new epoch has been sent. Undone if the epoch cannot be stored: the old entries were sent. */
  #restartNumbers(stream: OutboxStream): void {
    const [sent, taken] = [this.#sentThrough, this.#telemetryTaken]
    const undo = (): void => {
      this.#sentThrough = sent
      this.#telemetryTaken = taken
    }
    this.#store.note({ undo, again: () => {} })
    if (stream === 'telemetry') this.#telemetryTaken = 0
    else this.#sentThrough = 0
  }

  /** The operations with unacknowledged drops. */
  waitingDrops(): ReadonlySet<string> {
    return new Set(this.#statements.waitingDrops.all('stock.dropped'))
  }

  /** The ledger epochs that this store has used, including the current one. */
  knownEpochs(): string[] {
    return this.#statements.epochs.all()
  }

  /**
   * The store is a copy, so its ledger belongs to another history: deletes the ledger and all known epochs. A
   * new epoch must follow.
   */
  disown(): void {
    this.#store.transact(() => {
      this.#removeThrough('ledger', this.#positions.ledger.last)
      this.#statements.forgetEpochs.run()
    })
  }

  /** The hub must stop selling: it could no longer store the reports of its sales. */
  isLedgerFull(): boolean {
    const { base, last } = this.#positions.ledger
    const isCrowded = last - base >= this.#settings.ledgerEntries
    return isCrowded || this.#store.isFull() || this.#store.failure() !== undefined
  }

  /** Calls `listener` after each commit that changed a stream, except by `forget`. */
  onAppended(listener: (stream: OutboxStream) => void): void {
    this.#listeners.push(listener)
  }

  /** Corrects the times of telemetry in memory. For stored entries see `correct-times.ts`. */
  redate(correct: (at: number) => number): void {
    this.#store.afterCommit(() => {
      for (const entry of this.#telemetry) entry.at = correct(entry.at)
    })
  }

  /** Writes the telemetry from memory, in the current transaction if there is one. */
  flush(): void {
    // A full disk keeps its last space for the ledger.
    const count = this.#store.isFull() ? 0 : this.#telemetry.length
    if (count === 0 && this.#telemetryTaken <= this.#positions.telemetry.base) return
    this.#ifRoom(() => {
      // Removed first: the new entries then take the pages of the old ones, and the commit writes fewer pages.
      const overwritten = this.#positions.telemetry.last + count - this.#settings.telemetryEntries
      this.#removeThrough('telemetry', Math.max(this.#telemetryTaken, overwritten))
      for (const entry of this.#telemetry.slice(0, count)) this.#insert('telemetry', entry)
      this.#store.afterCommit(() => this.#telemetry.splice(0, count))
      if (count > 0) this.#announce('telemetry')
    })
  }

  #load(stream: OutboxStream): SenderPosition {
    const stored = this.#statements.position.get(stream)!
    return { ...stored, last: this.#tables[stream].last.get() ?? stored.base }
  }

  /** Changes a position in memory, as part of the current transaction. */
  #move(stream: OutboxStream, values: Partial<SenderPosition>): void {
    const before = this.#positions[stream]
    this.#store.note({ undo: () => void (this.#positions[stream] = before), again: () => {} })
    this.#positions[stream] = { ...before, ...values }
  }

  /** Removes the entry that `body` replaces, and closes the gap in the numbers. */
  #replace(body: HubEntry): void {
    if (mergeKey(body) === undefined) return
    const { tail: newest, removeOne, moveUp } = this.#statements
    const tail = newest.all(this.#sentThrough, this.#settings.mergedEntries)
    const replaced = replacedBy(tail.map(parsedRow), body)
    if (!replaced) return
    removeOne.run(replaced.seq)
    const behind = tail.filter(({ seq }) => seq > replaced.seq).toReversed()
    for (const { seq } of behind) moveUp.run(seq)
    this.#move('ledger', { last: this.#positions.ledger.last - 1 })
  }

  #insert(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
    const last = this.#positions[stream].last + 1
    this.#tables[stream].insert.run(last, this.#mintTag(), JSON.stringify(body))
    this.#move(stream, { last })
  }

  /** Runs in the current transaction. */
  #removeThrough(stream: OutboxStream, through: number): void {
    const tag = through > this.#positions[stream].base ? this.tagAt(stream, through) : undefined
    if (tag === undefined) return
    this.#tables[stream].remove.run(through)
    this.#statements.rebase.run(through, tag, stream)
    this.#move(stream, { base: through, baseTag: tag })
  }

  #announce(stream: OutboxStream): void {
    this.#store.afterCommit(() => {
      for (const listener of this.#listeners) listener(stream)
    })
  }

  /** If the storage fails, the work is repeated with the next write. */
  #ifRoom(work: () => void): void {
    try {
      this.#store.transact(work)
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
    }
  }

  #mintEpoch(): string {
    return randomHex(this.#random, 16)
  }

  #mintTag(): number {
    return tagOf(this.#random.bytes(4))
  }
}

function statementsOf({ db }: Store) {
  return {
    position: db.prepare<[OutboxStream], Omit<SenderPosition, 'last'>>(
      'SELECT epoch, base, base_tag AS baseTag FROM stream_positions WHERE stream = ?',
    ),
    create: db.prepare<[OutboxStream, string]>(
      'INSERT INTO stream_positions (stream, epoch, base, base_tag) VALUES (?, ?, 0, 0)',
    ),
    rebase: db.prepare<[number, number, OutboxStream]>(
      'UPDATE stream_positions SET base = ?, base_tag = ? WHERE stream = ?',
    ),
    restart: db.prepare<[string, OutboxStream]>(
      'UPDATE stream_positions SET epoch = ?, base = 0, base_tag = 0 WHERE stream = ?',
    ),
    waitingDrops: db
      .prepare<[kind: HubEntry['kind']], string>(
        "SELECT body ->> '$.operation_id' FROM outbox_ledger WHERE body ->> '$.kind' = ?",
      )
      .pluck(),
    tail: db.prepare<[after: number, count: number], { seq: number; body: string }>(
      'SELECT seq, body FROM outbox_ledger WHERE seq > ? ORDER BY seq DESC LIMIT ?',
    ),
    removeOne: db.prepare<[seq: number]>('DELETE FROM outbox_ledger WHERE seq = ?'),
    moveUp: db.prepare<[seq: number]>('UPDATE outbox_ledger SET seq = seq - 1 WHERE seq = ?'),
    learnEpoch: db.prepare<[string]>('INSERT INTO ledger_epochs (epoch) VALUES (?)'),
    epochs: db.prepare<[], string>('SELECT epoch FROM ledger_epochs ORDER BY id').pluck(),
    forgetEpochs: db.prepare<[]>('DELETE FROM ledger_epochs'),
  }
}

/** The entries of one stream. */
function tableOf({ db }: Store, stream: OutboxStream) {
  const table = `outbox_${stream}`
  return {
    last: db.prepare<[], number | null>(`SELECT max(seq) FROM ${table}`).pluck(),
    insert: db.prepare<[seq: number, tag: number, body: string]>(
      `INSERT INTO ${table} (seq, tag, body) VALUES (?, ?, ?)`,
    ),
    read: db
      .prepare<[first: number, count: number], [tag: number, body: string]>(
        `SELECT tag, body FROM ${table} WHERE seq >= ? ORDER BY seq LIMIT ?`,
      )
      .raw(),
    tag: db.prepare<[seq: number], number>(`SELECT tag FROM ${table} WHERE seq = ?`).pluck(),
    remove: db.prepare<[through: number]>(`DELETE FROM ${table} WHERE seq <= ?`),
    removeKind: db.prepare<[kind: string]>(`DELETE FROM ${table} WHERE body ->> '$.kind' = ?`),
    // Renumbers the entries so that they start after number `first`. Negative numbers are the intermediate
    // step, so that no row gets the number of a row that has not moved yet.
    renumber: db.prepare<[first: number]>(
      `UPDATE ${table} SET seq = -(? + counted.place)
       FROM (SELECT seq AS old, row_number() OVER (ORDER BY seq) AS place FROM ${table}) AS counted
       WHERE seq = counted.old`,
    ),
    makePositive: db.prepare<[]>(`UPDATE ${table} SET seq = -seq`),
  }
}

/**
 * The subject of an entry that reports a state. A later entry with the same key replaces an earlier one that
 * was never sent. Undefined for entries that always count: drops, counts, orders, operations, actions of
 * people.
 */
export function mergeKey(entry: HubEntry): string | undefined {
  if (entry.kind === 'state') return stateKey(entry.state)
  return entry.kind === 'alarm' ? `alarm ${entry.code} ${entry.subject}` : undefined
}

function stateKey(state: State): string {
  switch (state.of) {
    case 'row':
      return rowSubject(state.location)
    case 'bin':
      return binSubject(state.bin)
    case 'cabinet':
      return cabinetSubject(state.cabinet)
    case 'fridge':
      return fridgeSubject(state.fridge)
  }
}

/**
 * The entry that the new entry replaces: the newest entry of its key. A repeated alarm keeps its first entry,
 * because that entry contains the start of the incident. `waiting`: entries that have never been sent, newest
 * first.
 */
export function replacedBy<E extends { entry: HubEntry }>(
  waiting: readonly E[],
  entry: HubEntry,
): E | undefined {
  const key = mergeKey(entry)
  if (key === undefined) return undefined
  const [newest, older] = waiting.filter((each) => mergeKey(each.entry) === key)
  if (entry.kind !== 'alarm' || newest?.entry.kind !== 'alarm') return newest
  return older !== undefined && newest.entry.raised !== entry.raised ? newest : undefined
}
