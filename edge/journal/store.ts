import type Database from 'better-sqlite3'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { StorageFault } from '../../protocol/model/storage.ts'
import { openBallast, releaseBallast, type Ballast } from './ballast.ts'
import { migrate, migrations } from './migrations.ts'
import { openSoundFile, refuseForeignFile } from './open-file.ts'
import { Sqlite } from './sqlite-driver.ts'
import { StorageError, storageReasonOf } from './storage-error.ts'
import { BUSY_MS, isNoRoom, StorageWatch } from './storage-watch.ts'
import { Transactions, type Change, type Saved, type Synchronous } from './transactions.ts'

export { StoreFullError } from './storage-error.ts'

/**
 * Whether the machine failed (the disk is full, the card cannot be read) and not what was to be written: the same may
 * succeed later.
 */
export function isMachineFault(error: unknown): boolean {
  if (error instanceof StorageError) return true
  if (error instanceof Sqlite.SqliteError)
    return !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(error.code)
  return error instanceof Error && 'errno' in error
}

/** The hub's journal: one SQLite database, used synchronously, every commit on the disk before it returns. */
export interface Store {
  readonly db: Database.Database
  /**
   * Runs `work` in one immediate transaction and commits it; a call inside another joins that one. Whatever `work`
   * throws rolls everything back and is thrown on; a failure of the storage as a `StorageError`. Effects announced by
   * `afterCommit` run after the commit, in order.
   */
  transact<T>(work: () => Synchronous<T>): T
  /** Runs `work` within the present transaction; if it throws, its rows and effects alone are undone. */
  savepoint<T>(work: () => Synchronous<T>): T
  /** Whether a transaction can begin: the file answers, and nobody else keeps it. Throws, or is false, where it cannot. */
  isWritable(): boolean
  /** Runs `effect` after the present transaction's commit; at once where there is none. */
  afterCommit(effect: () => void): void
  /** Notes a change in memory that belongs to the present transaction. */
  note(change: Change): void
  /** Registers rows in memory that each commit writes. */
  onSave(rows: Saved): void
  /** Writes the changed rows now, in the present transaction, so that a query finds them. */
  save(): void
  /** Reads the rows in memory again: statements of the present transaction have changed their tables. */
  reread(): void
  /** True from the first "disk full" until the ballast could be laid again: the hub stops selling. */
  isFull(): boolean
  /** Why the storage cannot be used now; undefined while it works. */
  failure(): StorageFault | undefined
  /**
   * Calls `listener` once when the file cannot be used any more: it must be closed and opened again, because what was read
   * from it, and its open descriptors, may be of a file system that has gone. From then on every transaction fails. A full
   * disk and a lock pass without that; without a listener every failure is tried again.
   */
  onLost(listener: (error: StorageError) => void): void
  /** Transactions that were committed since it was opened. */
  commits(): number
  /** What the journal takes on the disk. */
  bytes(): number
  /** Looks how large the journal is, and tries to lay the ballast again. */
  relieve(): void
  close(): void
}

export interface StoreOptions {
  /** A file, or `:memory:`. A damaged file is kept beside it under another name, and a new one begun. */
  path: string
  /** An open database to use instead (it outlives the store): several lives of one simulated hub. */
  database?: Database.Database
  /** Pages that SQLite keeps in memory, in KiB. */
  cacheKb?: number
  /** What the journal may take on the disk before the hub stops selling; 512 MB by default. */
  maxBytes?: number
  /** The hub that the journal belongs to; another hub's journal is refused. Absent: any hub's. */
  hubId?: number
  checkpoint: Checkpoint
  log: Log
}

/** The driver's own is 16 MB, a fifth of what the hub may take. The system keeps the file's pages besides, where it has room. */
export const CACHE_KB = 512

export const MAX_MB = 512

/**
 * A commit writes every page that it has changed, whole, and an event changes a few bytes in each of a dozen: small pages
 * write a third of what SQLite's usual ones do (measured). A file keeps the size with which it was begun.
 */
const PAGE_BYTES = 1024
/** Pages in the log before they are moved to their places, 4 MB: those that changed often are moved once. */
const LOG_PAGES = 4096

/**
 * Opens the journal and brings its tables up to date. Throws `JournalRefused` if another version made the tables, a
 * `StorageError` if the storage cannot be used or the journal is another hub's.
 */
export function openStore(options: StoreOptions): Store {
  try {
    return openOrThrow(options)
  } catch (error) {
    const reason = storageReasonOf(error, options.path)
    if (reason === undefined || error instanceof StorageError) throw error
    throw new StorageError(reason, (error as Error).message, { cause: error })
  }
}

function openOrThrow(options: StoreOptions): Store {
  const { checkpoint, log, path, hubId, cacheKb = CACHE_KB, maxBytes = MAX_MB * 1024 * 1024 } = options
  const inFile = options.database === undefined && options.path !== ':memory:'
  const ballastPath = `${path}.ballast`
  if (inFile) refuseForeignFile(path, hubId)
  const db = options.database ?? (inFile ? openOnAnyDisk(path, ballastPath, log) : new Sqlite(path))
  const owned = options.database === undefined
  try {
    try {
      prepare(db, cacheKb, hubId)
    } catch (error) {
      if (!inFile || !isNoRoom(storageReasonOf(error, path))) throw error
      log.error({ path, error: String(error) }, 'the disk is full: the ballast makes room for the tables')
      releaseBallast(ballastPath)
      prepare(db, cacheKb, hubId)
    }
    if (inFile) proveWritable(db, path)
    const ballast: Ballast | undefined = inFile ? openBallast(ballastPath) : undefined
    const watch = new StorageWatch({ db, ballast, path, isFile: inFile, maxBytes, log })
    return createStore(db, { watch, checkpoint, log, owned })
  } catch (error) {
    if (owned) db.close()
    throw error
  }
}

/** Sets how the database is written, and brings its tables up to date. */
function prepare(db: Database.Database, cacheKb: number, hubId: number | undefined): void {
  db.pragma(`busy_timeout = ${BUSY_MS}`)
  db.pragma(`page_size = ${PAGE_BYTES}`)
  // Pages that are free are given back to the file system: after weeks without the cloud the file shrinks again.
  db.pragma('auto_vacuum = INCREMENTAL')
  db.pragma('journal_mode = WAL')
  // An act or a sale must survive a power cut: the log is flushed at every commit.
  db.pragma('synchronous = FULL')
  db.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  // A reader may keep the log from beginning anew; when that is over it shrinks.
  db.pragma(`journal_size_limit = ${2 * LOG_PAGES * PAGE_BYTES}`)
  db.pragma('foreign_keys = ON')
  db.pragma(`cache_size = ${-cacheKb}`)
  migrate(db, migrations, hubId)
}

/**
 * Throws if nothing can be written. SQLite opens a file on a read-only file system, and says so at the first page that it
 * writes. A full disk is no failure here: the hub can still read what it has to do.
 */
function proveWritable(db: Database.Database, path: string): void {
  const version = Number(db.pragma('user_version', { simple: true }))
  try {
    db.pragma(`user_version = ${version}`)
  } catch (error) {
    if (!isNoRoom(storageReasonOf(error, path))) throw error
  }
}

/**
 * Opens the file also where the disk has no room for what SQLite lays beside it: with the room of the ballast, and without
 * any alone, so that the hub can at least read what it has to do. Alone it stays until its next start.
 */
function openOnAnyDisk(path: string, ballastPath: string, log: Log): Database.Database {
  const ways: (() => Database.Database)[] = [
    () => openSoundFile(path, log),
    () => {
      releaseBallast(ballastPath)
      return openSoundFile(path, log)
    },
  ]
  for (const way of ways)
    try {
      return way()
    } catch (error) {
      if (!isNoRoom(storageReasonOf(error, path))) throw error
      log.error({ path, error: String(error) }, 'the disk is full: the journal hardly opens')
    }
  return openSoundFile(path, log, { alone: true })
}

interface StoreParts {
  watch: StorageWatch
  checkpoint: Checkpoint
  log: Log
  owned: boolean
}

function createStore(db: Database.Database, { watch, checkpoint, log, owned }: StoreParts): Store {
  const transactions = new Transactions(db, { watch, checkpoint, log })
  return {
    db,
    transact: (work) => transactions.transact(work),
    savepoint: (work) => transactions.savepoint(work),
    isWritable: () => transactions.isWritable(),
    afterCommit: (effect) => transactions.afterCommit(effect),
    note: (change) => transactions.note(change),
    onSave: (rows) => void transactions.saved.push(rows),
    save: () => transactions.save(),
    reread() {
      for (const rows of transactions.saved) rows.reread()
    },
    isFull: () => watch.isFull,
    failure: () => watch.fault,
    onLost: (listener) => watch.onLost(listener),
    commits: () => transactions.commits,
    bytes: () => watch.bytes(),
    relieve: () => watch.relieve(),
    close() {
      if (!owned) return
      try {
        db.close()
      } catch (error) {
        log.warn({ error: String(error) }, 'the journal could not be closed in good order')
      }
    },
  }
}
