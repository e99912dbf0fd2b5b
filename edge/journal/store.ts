import type Database from 'better-sqlite3'
import * as files from 'node:fs'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { StorageFault } from '../../protocol/model/storage.ts'
import { CACHE_KB, MAX_MB } from '../../protocol/settings/hub-limits.ts'
import { openBallast, releaseBallast, type Ballast } from './ballast.ts'
import { migrate, migrations } from './migrations.ts'
import { Sqlite } from './sqlite-driver.ts'
import { ofStorage, StorageError, storageReasonOf } from './storage-error.ts'
import { BUSY_MS, isNoRoom, StorageWatch } from './storage-watch.ts'
import { Transactions, type TransactionParts } from './transactions.ts'
import { basename, dirname } from 'node:path'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { judgeJournal } from './journal-schema.ts'

export { StoreFullError } from './storage-error.ts'

/** Whether the machine failed (full disk, unreadable card) rather than the data. The same write may succeed later. */
export function isMachineFault(error: unknown): boolean {
  if (error instanceof StorageError) return true
  if (error instanceof Sqlite.SqliteError)
    return !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(error.code)
  return error instanceof Error && 'errno' in error
}

/** The hub's journal: one SQLite database with synchronous calls. Each commit is on the disk before it returns. */
export class Store extends Transactions {
  readonly #parts: StoreParts

  constructor(parts: StoreParts) {
    super(parts)
    this.#parts = parts
  }

  /** True from the first "disk full" until the ballast is laid again. Meanwhile the hub does not sell. */
  isFull(): boolean {
    return this.#parts.watch.isFull
  }

  /** Why the storage cannot be used now; undefined if it works. */
  failure(): StorageFault | undefined {
    return this.#parts.watch.fault
  }

  /**
   * Calls `listener` once when the file must be closed and reopened. The loaded data and open descriptors may
   * belong to a file system that is gone. From then on every transaction fails. A full disk and a lock end
   * without reopening. Without a listener every failure is retried.
   */
  onLost(listener: (error: StorageError) => void): void {
    this.#parts.watch.onLost(listener)
  }

  /** The journal's size on the disk. */
  bytes(): number {
    return this.#parts.watch.bytes()
  }

  /** Checks the size of the journal, and tries to lay the ballast again. */
  relieve(): void {
    this.#parts.watch.relieve()
  }

  close(): void {
    const { owned, log } = this.#parts
    if (!owned) return
    try {
      this.db.close()
    } catch (error) {
      log.warn({ error: String(error) }, 'the journal could not be closed in good order')
    }
  }
}

interface StoreParts extends TransactionParts {
  /** The store closes the database. */
  owned: boolean
}

interface StoreOptions {
  /** A file, or `:memory:`. A damaged file is moved to another name next to it, and a new file is created. */
  path: string
  /** An open database to use instead; it outlives the store. Used for several processes of one simulated hub. */
  database?: Database.Database
  /** SQLite's page cache in KiB. */
  cacheKb?: number
  /** Maximum size of the journal before the hub stops selling (default 512 MB). */
  maxBytes?: number
  /** The hub that owns the journal; another hub's journal is refused. If it is absent, any journal is accepted. */
  hubId?: number
  checkpoint: Checkpoint
  log: Log
}

/**
 * A commit writes whole pages, and an event changes a few bytes in about a dozen pages. With small pages a
 * commit writes a third of the bytes of SQLite's default size (measured). A file keeps the page size of its
 * creation.
 */
const PAGE_BYTES = 1024
/** Pages in the log before a checkpoint, 4 MB: a page that changed often is moved once. */
const LOG_PAGES = 4096

/**
 * Opens the journal and migrates its tables. Throws `JournalRefused` if another version created the tables.
 * Throws a `StorageError` if the storage cannot be used or the journal belongs to another hub.
 */
export const openStore = (options: StoreOptions): Store => ofStorage(options.path, () => openOrThrow(options))

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
    return new Store({ db, watch, checkpoint, log, owned })
  } catch (error) {
    if (owned) db.close()
    throw error
  }
}

/** Sets the pragmas and migrates the tables. */
function prepare(db: Database.Database, cacheKb: number, hubId: number | undefined): void {
  db.pragma(`busy_timeout = ${BUSY_MS}`)
  db.pragma(`page_size = ${PAGE_BYTES}`)
  // Free pages are returned to the file system, so the file shrinks after weeks without the cloud.
  db.pragma('auto_vacuum = INCREMENTAL')
  db.pragma('journal_mode = WAL')
  // An action or a sale must survive a power cut: the log is flushed at every commit.
  db.pragma('synchronous = FULL')
  db.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  // A reader may prevent the log from restarting. When the reader ends, the log shrinks.
  db.pragma(`journal_size_limit = ${2 * LOG_PAGES * PAGE_BYTES}`)
  db.pragma('foreign_keys = ON')
  db.pragma(`cache_size = ${-cacheKb}`)
  migrate(db, migrations, hubId)
}

/**
 * Throws if the file cannot be written. SQLite opens a file on a read-only file system, and fails only when
 * it writes the first page. A full disk is no failure here: the hub can still read its pending work.
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
 * Opens the file even if the disk has no room for SQLite's extra files. It first releases the ballast. If
 * that is not enough, it opens the file exclusively, which needs no extra files, so that the hub can read its
 * pending work. Exclusive mode lasts until the next start.
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

/**
 * Opens the database file. A file that fails its integrity check is moved aside with its log, and a new file
 * is created. A hub with a new store reconciles with its controllers and the cloud; a hub with a damaged
 * store is unpredictable. `alone`: exclusive lock for one process, so SQLite needs no extra files for
 * reading.
 */
function openSoundFile(path: string, log: Log, { alone = false } = {}): Database.Database {
  const locking = alone ? 'EXCLUSIVE' : 'NORMAL'

  makeFolder(files, dirname(path))
  const damage = findDamage(path, locking)
  if (damage !== undefined) {
    const aside = nextOf(`${path}.damaged`)
    for (const suffix of ['', '-wal', '-shm'])
      if (files.existsSync(path + suffix)) files.renameSync(path + suffix, aside + suffix)
    log.error({ path, aside, damage }, 'the journal is damaged: it is set aside, and a new one started')
    dropOldest(`${path}.damaged`)
  }
  const db = new Sqlite(path)
  db.pragma(`locking_mode = ${locking}`)
  return db
}

/**
 * Throws if the file is the journal of another hub or version. The connection is read-only, because a writing
 * connection moves SQLite's log into the file when it closes. If the file cannot be read this way, the check
 * follows when it is open.
 */
export function refuseForeignFile(path: string, hubId: number | undefined): void {
  if (!files.existsSync(path) || files.statSync(path).size === 0) return
  let db: Database.Database | undefined
  try {
    db = new Sqlite(path, { readonly: true })
    judgeJournal(db, migrations, hubId)
  } catch (error) {
    const reason = storageReasonOf(error)
    if (reason === undefined || reason === 'foreign_journal') throw error
  } finally {
    db?.close()
  }
}

function findDamage(path: string, locking: string): string | undefined {
  if (!files.existsSync(path)) return undefined
  let db: Database.Database | undefined
  try {
    db = new Sqlite(path)
    db.pragma(`locking_mode = ${locking}`)
    const verdict: unknown = db.pragma('integrity_check(1)', { simple: true })
    return verdict === 'ok' ? undefined : String(verdict)
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error
    // Other errors (permissions, memory, lock) are for the operator: a new file would not help.
    if (error.code !== 'SQLITE_NOTADB' && !error.code.startsWith('SQLITE_CORRUPT')) throw error
    return error.message
  } finally {
    db?.close()
  }
}

/** Number of damaged journals that are kept for an analysis of the cause. */
const KEPT_DAMAGED = 3

function dropOldest(stem: string): void {
  for (const number of numbersOf(stem).slice(0, -KEPT_DAMAGED))
    for (const suffix of ['', '-wal', '-shm']) files.rmSync(`${stem}-${number}${suffix}`, { force: true })
}

const nextOf = (stem: string): string => `${stem}-${(numbersOf(stem).at(-1) ?? 0) + 1}`

/** The numbers of the files `<stem>-N`, the smallest first. */
const numbersOf = (stem: string): number[] =>
  files
    .readdirSync(dirname(stem))
    .flatMap((name) => {
      const [, number] = name.startsWith(`${basename(stem)}-`) ? (/-(\d+)$/.exec(name) ?? []) : []
      return number === undefined ? [] : [Number(number)]
    })
    .toSorted((left, right) => left - right)
