import type { HubEntry, TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import { StoreFullError, type Store } from './store.ts'

/** `ledger` is never dropped (I4); `telemetry` overwrites its oldest entries. */
export type OutboxStream = 'ledger' | 'telemetry'

export interface OutboxSettings {
  /** Telemetry is collected in memory and written together this often: spares the card. */
  telemetryFlushMs: number
  /** Telemetry entries kept; the oldest give way. */
  telemetryEntries: number
  /** Unacknowledged ledger entries at which the hub stops selling. */
  ledgerEntries: number
}

export const defaultOutboxSettings: OutboxSettings = {
  telemetryFlushMs: 60_000,
  telemetryEntries: 50_000,
  ledgerEntries: 1_000_000,
}

/** Consecutive entries, as they are sent. Bodies are JSON text: they are spliced into the batch as they are stored. */
export interface OutboxSlice {
  entries: { tag: number; body: string }[]
  /** The tag of the entry before the first. */
  previousTag: number
  /** The oldest entry that is still there. */
  oldest: number
}

export interface Outbox {
  /** Adds an entry: to the ledger in the transaction under way, or one of its own; to the telemetry in memory. */
  append(stream: 'ledger', body: HubEntry): void
  append(stream: 'telemetry', body: TelemetryEntry): void
  position(stream: OutboxStream): SenderPosition
  /** The entries `first` … `first + count - 1`; fewer where there are no more. */
  read(stream: OutboxStream, first: number, count: number): OutboxSlice
  /** The tag of entry `seq`, where it is still there or the last that was forgotten. */
  tagAt(stream: OutboxStream, seq: number): number | undefined
  /**
   * Deletes through `through`. Only for what the cloud acknowledged after its commit (I4). On a full disk it stays until
   * the next acknowledgement.
   */
  forget(stream: OutboxStream, through: number): void
  /**
   * Begins a new epoch. What the cloud has not acknowledged goes on at its beginning, in its order; a ledger's caller
   * appends the snapshot next, in the same transaction.
   */
  newEpoch(stream: OutboxStream): void
  /** The ledger epochs of this store's life, the present one included. */
  knownEpochs(): string[]
  /** The store is a copy, and its past not its own: no epoch of it is known any more. A new epoch must follow. */
  forgetEpochs(): void
  /** The hub stops selling: what it sold could not be reported any more. */
  isLedgerFull(): boolean
  /** Calls `listener` after each commit that changed a stream other than by `forget`. */
  onAppended(listener: (stream: OutboxStream) => void): void
  /** Writes the telemetry that is still in memory. */
  flush(): void
  /** Flushes, and stops the timer. */
  stop(): void
}

/** The hub's senders' store, on tables `outbox`, `stream_positions` and `ledger_epochs`. */
export function createOutbox(
  store: Store,
  runtime: Runtime,
  settings: OutboxSettings = defaultOutboxSettings,
): Outbox {
  const statements = statementsOf(store)
  const listeners: ((stream: OutboxStream) => void)[] = []
  let telemetry: TelemetryEntry[] = []
  let cancelFlush: Cancel | undefined

  const mintEpoch = (): string => randomHex(runtime.random, 16)
  const mintTag = (): number => {
    const bytes = runtime.random.bytes(4)
    return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0)
  }
  const announce = (stream: OutboxStream): void =>
    store.afterCommit(() => {
      for (const listener of listeners) listener(stream)
    })
  const position = (stream: OutboxStream): SenderPosition => statements.position.get(stream)!

  function tagAt(stream: OutboxStream, seq: number): number | undefined {
    const { base, baseTag } = position(stream)
    return seq === base ? baseTag : statements.tag.get(stream, seq)
  }

  function insert(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
    statements.insert.run(stream, statements.advance.get(stream)!, mintTag(), JSON.stringify(body))
  }

  function removeThrough(stream: OutboxStream, through: number): void {
    const { base } = position(stream)
    const tag = through > base ? statements.tag.get(stream, through) : undefined
    if (tag === undefined) return
    statements.remove.run(stream, through)
    statements.rebase.run(through, tag, stream)
  }

  /** False where the disk is full: it will be done with what comes next. */
  function ifRoom(work: () => void): boolean {
    try {
      store.transact(work)
      return true
    } catch (error) {
      if (error instanceof StoreFullError) return false
      throw error
    }
  }

  function flush(): void {
    cancelFlush?.()
    cancelFlush = undefined
    // A full disk leaves its last room to what must not be lost.
    if (telemetry.length === 0 || store.isFull()) return
    const isWritten = ifRoom(() => {
      for (const entry of telemetry) insert('telemetry', entry)
      removeThrough('telemetry', position('telemetry').last - settings.telemetryEntries)
      announce('telemetry')
    })
    if (isWritten) telemetry = []
  }

  function collect(entry: TelemetryEntry): void {
    telemetry.push(entry)
    if (telemetry.length > settings.telemetryEntries) telemetry.shift()
    cancelFlush ??= runtime.clock.after(settings.telemetryFlushMs, flush)
  }

  store.transact(() => {
    for (const stream of ['ledger', 'telemetry'] as const)
      if (statements.position.get(stream) === undefined) {
        const epoch = mintEpoch()
        statements.create.run(stream, epoch)
        if (stream === 'ledger') statements.learnEpoch.run(epoch)
      }
  })

  return {
    append(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
      if (stream === 'telemetry') return collect(body as TelemetryEntry)
      store.transact(() => {
        insert(stream, body)
        announce(stream)
      })
    },
    position,
    read(stream, first, count) {
      return {
        entries: statements.read.all(stream, first, count).map(([tag, body]) => ({ tag, body })),
        previousTag: tagAt(stream, first - 1) ?? 0,
        oldest: position(stream).base + 1,
      }
    },
    tagAt,
    forget(stream, through) {
      ifRoom(() => removeThrough(stream, through))
    },
    newEpoch(stream) {
      store.transact(() => {
        const { base, last } = position(stream)
        const epoch = mintEpoch()
        statements.negate.run(base, stream)
        statements.makePositive.run(stream)
        statements.restart.run(epoch, last - base, stream)
        if (stream === 'ledger') statements.learnEpoch.run(epoch)
        announce(stream)
      })
    },
    knownEpochs: () => statements.epochs.all(),
    forgetEpochs() {
      statements.forgetEpochs.run()
    },
    isLedgerFull() {
      const { base, last } = position('ledger')
      return store.isFull() || last - base >= settings.ledgerEntries
    },
    onAppended(listener) {
      listeners.push(listener)
    },
    flush,
    stop() {
      flush()
    },
  }
}

function statementsOf({ db }: Store) {
  return {
    position: db.prepare<[OutboxStream], SenderPosition>(
      'SELECT epoch, base, base_tag AS baseTag, last FROM stream_positions WHERE stream = ?',
    ),
    create: db.prepare<[OutboxStream, string]>(
      'INSERT INTO stream_positions (stream, epoch, base, base_tag, last) VALUES (?, ?, 0, 0, 0)',
    ),
    advance: db
      .prepare<[OutboxStream], number>(
        'UPDATE stream_positions SET last = last + 1 WHERE stream = ? RETURNING last',
      )
      .pluck(),
    insert: db.prepare<[OutboxStream, number, number, string]>(
      'INSERT INTO outbox (stream, seq, tag, body) VALUES (?, ?, ?, ?)',
    ),
    read: db
      .prepare<[OutboxStream, number, number], [tag: number, body: string]>(
        'SELECT tag, body FROM outbox WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?',
      )
      .raw(),
    tag: db
      .prepare<[OutboxStream, number], number>('SELECT tag FROM outbox WHERE stream = ? AND seq = ?')
      .pluck(),
    remove: db.prepare<[OutboxStream, number]>('DELETE FROM outbox WHERE stream = ? AND seq <= ?'),
    rebase: db.prepare<[number, number, OutboxStream]>(
      'UPDATE stream_positions SET base = ?, base_tag = ? WHERE stream = ?',
    ),
    restart: db.prepare<[string, number, OutboxStream]>(
      'UPDATE stream_positions SET epoch = ?, base = 0, base_tag = 0, last = ? WHERE stream = ?',
    ),
    // Twice, through the negative numbers: a row must not meet the number of one that has yet to move.
    negate: db.prepare<[number, OutboxStream]>('UPDATE outbox SET seq = ? - seq WHERE stream = ?'),
    makePositive: db.prepare<[OutboxStream]>('UPDATE outbox SET seq = -seq WHERE stream = ?'),
    learnEpoch: db.prepare<[string]>('INSERT INTO ledger_epochs (epoch) VALUES (?)'),
    epochs: db.prepare<[], string>('SELECT epoch FROM ledger_epochs ORDER BY id').pluck(),
    forgetEpochs: db.prepare<[]>('DELETE FROM ledger_epochs'),
  }
}
