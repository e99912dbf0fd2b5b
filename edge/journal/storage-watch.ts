import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { Log } from '../../protocol/model/log.ts'
import type { StorageFault, StorageReason } from '../../protocol/model/storage.ts'
import type { Ballast } from './ballast.ts'
import { StorageError, StoreFullError, storageReasonOf } from './storage-error.ts'

/** Milliseconds that the whole service blocks, once, if a foreign process locks the journal. */
export const BUSY_MS = 1000

/** Reasons against which the ballast helps. */
export const isNoRoom = (reason: StorageReason | undefined): boolean =>
  reason === 'full' || reason === 'no_inodes'
/** Reasons that may end while the file stays open. */
const passes = (reason: StorageReason): boolean => isNoRoom(reason) || reason === 'locked'

interface StorageWatchOptions {
  db: Database.Database
  ballast: Ballast | undefined
  /** The file's path for messages. */
  path: string
  /** True if the file system of `path` can be checked for the cause. */
  isFile: boolean
  /** The hub stops selling when the journal and its log are larger than this. */
  maxBytes: number
  log: Log
}

/**
 * Fraction of the limit at which a warning is logged. A journal that exceeded its limit works again below
 * this fraction.
 */
const WARN_AT = 0.8
/** Free pages that are returned to the file system per run: a few milliseconds. */
const VACUUMED_PAGES = 512
/** Fewer free pages stay in the file: the next entries use them, and to return them is a commit of its own. */
const SPARE_PAGES = 64

/** Tracks whether the storage of an open journal works, and reacts to failures. */
export class StorageWatch {
  readonly #options: StorageWatchOptions
  readonly #listeners: ((error: StorageError) => void)[] = []
  /** The current failure, and the number of failed attempts since its start. */
  #failure: { error: StorageError; count: number } | undefined
  #isLost = false
  #isOversized = false
  #hasWarned = false

  constructor(options: StorageWatchOptions) {
    this.#options = options
    this.#judgeBallast()
  }

  get isFull(): boolean {
    return isNoRoom(this.#failure?.error.reason)
  }

  get fault(): StorageFault | undefined {
    return this.#failure?.error.faultOf(this.#options.path)
  }

  onLost(listener: (error: StorageError) => void): void {
    this.#listeners.push(listener)
  }

  /** Throws if the file must be reopened first. */
  refuseIfLost(): void {
    if (!this.#isLost || !this.#failure) return
    this.#failure.count += 1
    throw this.#failure.error
  }

  /** Converts a storage failure to a `StorageError` and notes it. Any other error is returned unchanged. */
  failureOf(error: unknown): unknown {
    const { db, path, isFile } = this.#options
    const reason = storageReasonOf(error, isFile ? path : undefined)
    if (reason === undefined) return error
    const { message } = error as Error
    const options = { cause: error }
    if (isNoRoom(reason))
      return this.#makeRoom(
        error instanceof StorageError ? error : new StoreFullError(reason, message, options),
      )
    const noted = error instanceof StorageError ? error : new StorageError(reason, message, options)
    // The first attempt has waited. Later attempts fail at once while the lock lasts, so that the event loop
    // runs.
    if (reason === 'locked') db.pragma('busy_timeout = 0')
    this.note(noted)
    return noted
  }

  /** Notes a failure. Repeated failures with the same reason are logged once. */
  note(error: StorageError): void {
    const { log, path } = this.#options
    const isNews = this.#failure?.error.reason !== error.reason
    this.#failure = { error, count: (this.#failure?.count ?? 0) + 1 }
    if (isNews)
      log.error(
        { ...error.faultOf(path) },
        isNoRoom(error.reason)
          ? 'the disk is full: the ballast is released and the hub stops selling'
          : 'the storage fails: the hub stops selling, and nothing moves until it works again',
      )
    if (passes(error.reason) || this.#isLost || this.#listeners.length === 0) return
    this.#isLost = true
    for (const listener of this.#listeners) listener(error)
  }

  /** A transaction has succeeded. After "disk full", the disk counts as full until the ballast is laid again. */
  worked(): void {
    if (!this.#failure || this.isFull) return
    this.#recover()
    this.#judgeBallast()
  }

  /** Checks the size of the journal, returns free pages to the file system, and tries to lay the ballast again. */
  relieve(): void {
    const { ballast } = this.#options
    try {
      this.#measure()
      if (!this.isFull || this.#isOversized) return
      if (ballast === undefined || ballast.lay()) this.#recover()
    } catch (error) {
      this.failureOf(error)
    }
  }

  /** Size of the journal and its log, without free pages. */
  bytes(): number {
    const { db, path, isFile } = this.#options
    const pragma = (name: string): number => Number(db.pragma(name, { simple: true }))
    const used = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
    return used + (isFile ? sizeOf(`${path}-wal`) : 0)
  }

  #measure(): void {
    const { db, maxBytes, log, path } = this.#options
    const free = Number(db.pragma('freelist_count', { simple: true }))
    if (free > SPARE_PAGES) db.pragma(`incremental_vacuum(${VACUUMED_PAGES})`)
    const bytes = this.bytes()
    const about = { path, mb: megabytes(bytes), maxMb: megabytes(maxBytes) }
    if (bytes > WARN_AT * maxBytes && !this.#hasWarned)
      log.warn(about, 'the journal nears its limit, STORE_MAX_MB: the hub stops selling there')
    this.#hasWarned = bytes > WARN_AT * maxBytes
    this.#isOversized = bytes > (this.#isOversized ? WARN_AT : 1) * maxBytes
    if (this.#isOversized)
      this.note(
        new StoreFullError('full', `the journal has ${about.mb} MB, STORE_MAX_MB allows ${about.maxMb}`),
      )
  }

  #judgeBallast(): void {
    const { ballast } = this.#options
    if (ballast?.isLaid() === false)
      this.note(new StoreFullError(ballast.lack() ?? 'full', 'no room for the ballast'))
  }

  #recover(): void {
    const { db, log } = this.#options
    const { error, count } = this.#failure!
    this.#failure = undefined
    db.pragma(`busy_timeout = ${BUSY_MS}`)
    log.info({ reason: error.reason, failures: count }, 'the storage works again')
  }

  #makeRoom(error: StorageError): StorageError {
    const { db, ballast, log } = this.#options
    const isNews = !this.isFull
    this.note(error)
    try {
      ballast?.release()
      // The checkpoint empties the log, so that SQLite reuses its space.
      db.pragma('wal_checkpoint(RESTART)')
    } catch (problem) {
      if (isNews) log.warn({ error: String(problem) }, 'the journal makes no room')
    }
    return error
  }
}

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
