import type { HubEntry, TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { mergeKey, replacedBy } from './merge.ts'
import { StorageError } from './storage-error.ts'
import type { Store } from './store.ts'

/** `ledger` is never dropped (I4); `telemetry` overwrites its oldest entries. */
export type OutboxStream = 'ledger' | 'telemetry'

export interface OutboxSettings {
  /** Telemetry entries kept; the oldest give way. */
  telemetryEntries: number
  /** Unacknowledged ledger entries at which the hub stops selling. */
  ledgerEntries: number
}

export const defaultOutboxSettings: OutboxSettings = {
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
  /**
   * Adds an entry: to the ledger in the transaction under way, or one of its own; to the telemetry in memory, until `flush`. A
   * state or an alarm of the ledger replaces an earlier one of the same subject that was never read: a sensor that changes on
   * and on while the cloud is away takes no more room than one that changed once.
   */
  append(stream: 'ledger', body: HubEntry): void
  append(stream: 'telemetry', body: TelemetryEntry): void
  position(stream: OutboxStream): SenderPosition
  /** The entries `first` … `first + count - 1`; fewer where there are no more. They are sent: nothing replaces them any more. */
  read(stream: OutboxStream, first: number, count: number): OutboxSlice
  /** The tag of entry `seq`, where it is still there or the last that was forgotten. */
  tagAt(stream: OutboxStream, seq: number): number | undefined
  /**
   * Deletes through `through`. Only for what the cloud acknowledged after its commit (I4). On a full disk it stays until
   * the next acknowledgement. Telemetry stays until what is written next. The ledger's entries do not: a store that is restored
   * from a copy would report them a second time, under the epoch that it begins.
   */
  forget(stream: OutboxStream, through: number): void
  /**
   * Begins a new epoch. What the cloud has not acknowledged goes on at its beginning, behind `first`, in its order, without
   * snapshots: what they say is past. A ledger's caller appends the next one in the same transaction, or none where it may not
   * say one.
   */
  newEpoch(stream: OutboxStream, first?: readonly HubEntry[]): void
  /** The operations whose drops the cloud has not acknowledged. */
  waitingDrops(): ReadonlySet<string>
  /** The ledger epochs of this store's life, the present one included. */
  knownEpochs(): string[]
  /**
   * The store is a copy, and its past not its own: its ledger belongs to another history, and no epoch of it is known any
   * more. A new epoch must follow.
   */
  disown(): void
  /** The hub stops selling: what it sold could not be reported any more. */
  isLedgerFull(): boolean
  /** Calls `listener` after each commit that changed a stream other than by `forget`. */
  onAppended(listener: (stream: OutboxStream) => void): void
  /** Corrects the times of the telemetry that is in memory; those of written entries: `correct-times.ts`. */
  redate(correct: (at: number) => number): void
  /** Writes the telemetry that is in memory, in the transaction under way if there is one. */
  flush(): void
}

/** An entry is looked for among so many of the newest: what changes on and on is there. */
const MERGED_ENTRIES = 64

const streams = ['ledger', 'telemetry'] as const satisfies readonly OutboxStream[]

const tagOf = (bytes: Uint8Array): number => new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0)

const parsedRow = ({ seq, body }: { seq: number; body: string }) => ({
  seq,
  entry: JSON.parse(body) as HubEntry,
})

/** The hub's senders' store, on tables `outbox_ledger`, `outbox_telemetry`, `stream_positions` and `ledger_epochs`. */
export function createOutbox(
  store: Store,
  { random }: { random: Random },
  settings: OutboxSettings = defaultOutboxSettings,
): Outbox {
  const statements = statementsOf(store)
  const tables = { ledger: tableOf(store, 'ledger'), telemetry: tableOf(store, 'telemetry') }
  const listeners: ((stream: OutboxStream) => void)[] = []
  const telemetry: TelemetryEntry[] = []
  /** Through which entry the telemetry is acknowledged; it is deleted with what is written next. */
  let telemetryTaken = 0

  const mintEpoch = (): string => randomHex(random, 16)
  const mintTag = (): number => tagOf(random.bytes(4))

  store.transact(() => {
    for (const stream of streams)
      if (statements.position.get(stream) === undefined) {
        const epoch = mintEpoch()
        statements.create.run(stream, epoch)
        if (stream === 'ledger') statements.learnEpoch.run(epoch)
      }
  })
  const positions = { ledger: load('ledger'), telemetry: load('telemetry') }

  /** Through which entry the ledger may have been sent. Nobody knows what an earlier life has sent. */
  let sentThrough = position('ledger').last

  function load(stream: OutboxStream): SenderPosition {
    const stored = statements.position.get(stream)!
    return { ...stored, last: tables[stream].last.get() ?? stored.base }
  }

  function position(stream: OutboxStream): SenderPosition {
    return positions[stream]
  }

  /** Changes a position in memory, in the transaction under way. */
  function move(stream: OutboxStream, values: Partial<SenderPosition>): void {
    const before = positions[stream]
    store.note({ undo: () => void (positions[stream] = before), again: () => {} })
    positions[stream] = { ...before, ...values }
  }

  /** Removes the entry that this one replaces, and closes the gap. */
  function replace(body: HubEntry): void {
    if (mergeKey(body) === undefined) return
    const tail = statements.tail.all(sentThrough, MERGED_ENTRIES)
    const replaced = replacedBy(tail.map(parsedRow), body)
    if (!replaced) return
    statements.removeOne.run(replaced.seq)
    const behind = tail.filter(({ seq }) => seq > replaced.seq).toReversed()
    for (const { seq } of behind) statements.moveUp.run(seq)
    move('ledger', { last: positions.ledger.last - 1 })
  }

  const announce = (stream: OutboxStream): void =>
    store.afterCommit(() => {
      for (const listener of listeners) listener(stream)
    })

  function tagAt(stream: OutboxStream, seq: number): number | undefined {
    const { base, baseTag } = positions[stream]
    if (seq <= base) return seq === base ? baseTag : undefined
    return tables[stream].tag.get(seq)
  }

  function insert(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
    const last = positions[stream].last + 1
    tables[stream].insert.run(last, mintTag(), JSON.stringify(body))
    move(stream, { last })
  }

  /** In the transaction under way. */
  function removeThrough(stream: OutboxStream, through: number): void {
    const tag = through > positions[stream].base ? tagAt(stream, through) : undefined
    if (tag === undefined) return
    tables[stream].remove.run(through)
    statements.rebase.run(through, tag, stream)
    move(stream, { base: through, baseTag: tag })
  }

  /** False if the storage fails: it will be done with what comes next. */
  function ifRoom(work: () => void): boolean {
    try {
      store.transact(work)
      return true
    } catch (error) {
      if (error instanceof StorageError) return false
      throw error
    }
  }

  return {
    append(stream: OutboxStream, body: HubEntry | TelemetryEntry): void {
      if (stream === 'telemetry') {
        telemetry.push(body as TelemetryEntry)
        if (telemetry.length > settings.telemetryEntries) telemetry.shift()
        return
      }
      store.transact(() => {
        replace(body as HubEntry)
        insert(stream, body)
        announce(stream)
      })
    },
    position,
    read(stream, first, count) {
      const rows = tables[stream].read.all(first, count)
      if (stream === 'ledger') sentThrough = Math.max(sentThrough, first + rows.length - 1)
      return {
        entries: rows.map(([tag, body]) => ({ tag, body })),
        previousTag: tagAt(stream, first - 1) ?? 0,
        oldest: position(stream).base + 1,
      }
    },
    tagAt,
    forget(stream, through) {
      if (stream === 'ledger') ifRoom(() => removeThrough(stream, through))
      else telemetryTaken = Math.max(telemetryTaken, through)
    },
    newEpoch(stream, first = []) {
      store.transact(() => {
        if (stream === 'telemetry') removeThrough(stream, telemetryTaken)
        else tables.ledger.removeKind.run('snapshot' satisfies HubEntry['kind'])
        const epoch = mintEpoch()
        tables[stream].renumber.run(first.length)
        tables[stream].makePositive.run()
        for (const [index, body] of first.entries())
          tables[stream].insert.run(index + 1, mintTag(), JSON.stringify(body))
        statements.restart.run(epoch, stream)
        if (stream === 'ledger') statements.learnEpoch.run(epoch)
        move(stream, load(stream))
        if (stream === 'telemetry') telemetryTaken = 0
        else sentThrough = 0
        announce(stream)
      })
    },
    waitingDrops: () => new Set(statements.waitingDrops.all('stock.dropped')),
    knownEpochs: () => statements.epochs.all(),
    disown() {
      store.transact(() => {
        removeThrough('ledger', position('ledger').last)
        statements.forgetEpochs.run()
      })
    },
    isLedgerFull() {
      const { base, last } = positions.ledger
      return store.isFull() || store.failure() !== undefined || last - base >= settings.ledgerEntries
    },
    onAppended(listener) {
      listeners.push(listener)
    },
    redate(correct) {
      store.afterCommit(() => {
        for (const entry of telemetry) entry.at = correct(entry.at)
      })
    },
    flush() {
      // A full disk leaves its last room to what must not be lost.
      const count = store.isFull() ? 0 : telemetry.length
      if (count === 0 && telemetryTaken <= positions.telemetry.base) return
      ifRoom(() => {
        for (const entry of telemetry.slice(0, count)) insert('telemetry', entry)
        const { last } = positions.telemetry
        removeThrough('telemetry', Math.max(telemetryTaken, last - settings.telemetryEntries))
        store.afterCommit(() => telemetry.splice(0, count))
        if (count > 0) announce('telemetry')
      })
    },
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
    // Behind so many. Twice, through the negative numbers: a row must not meet the number of one that has yet to move.
    renumber: db.prepare<[first: number]>(
      `UPDATE ${table} SET seq = -(? + counted.place)
       FROM (SELECT seq AS old, row_number() OVER (ORDER BY seq) AS place FROM ${table}) AS counted
       WHERE seq = counted.old`,
    ),
    makePositive: db.prepare<[]>(`UPDATE ${table} SET seq = -seq`),
  }
}
