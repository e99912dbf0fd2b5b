import { rmSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import { openBallast, type Ballast } from './ballast.ts'
import { migrate, migrations } from './migrations.ts'

import { openSoundFile } from './open-file.ts'
import { Sqlite } from './sqlite-driver.ts'

/**
 * The journal cannot grow, as the disk is full: nothing of the transaction happened, and whoever wanted it may try again.
 * A full disk ends no service: a hub that cannot sell can still be repaired.
 */
export class StoreFullError extends Error {
  override name = 'StoreFullError'
  readonly code = 'SQLITE_FULL'
}

/** A result that is not a promise: a transaction that awaited would end before its work did. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T

/**
 * Whether the machine failed (the disk is full, the card cannot be read) and not what was to be written: the same may
 * succeed later.
 */
export function isMachineFault(error: unknown): boolean {
  if (error instanceof Sqlite.SqliteError)
    return !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(error.code)
  return error instanceof Error && 'errno' in error
}

/** The hub's journal: one SQLite database, used synchronously, every commit on the disk before it returns. */
export interface Store {
  readonly db: Database.Database
  /**
   * Runs `work` in one immediate transaction and commits it; a call inside another joins that one. Whatever `work`
   * throws rolls everything back and is thrown on; a full disk as a `StoreFullError`. Effects announced by `afterCommit` run after the commit, in order.
   */
  transact<T>(work: () => Synchronous<T>): T
  /** Runs `work` within the present transaction; if it throws, its rows and effects alone are undone. */
  savepoint<T>(work: () => Synchronous<T>): T
  /** Whether a transaction can begin: the file answers, and nobody else keeps it. Throws, or is false, where it cannot. */
  isWritable(): boolean
  /** Runs `effect` after the present transaction's commit; at once where there is none. */
  afterCommit(effect: () => void): void
  /** Keeps in memory what `read` finds, for what is asked many times in one event. */
  keep<T>(read: () => T): Kept<[], T>
  /** The same by a key: what was asked for since it was last forgotten. */
  keepBy<Key, T>(read: (key: Key) => T): Kept<[key: Key], T>
  /** Forgets all that is kept: tables were written past those who keep what they hold. */
  reread: () => void
  /** True from the first "disk full" until the ballast could be laid again: the hub stops selling. */
  isFull(): boolean
  /** Transactions that were committed since it was opened. */
  commits(): number
  /** Tries to lay the ballast again. */
  relieve(): void
  close(): void
}

/**
 * What a query found, kept until `forget`: of one key, or all. Whoever writes to its tables calls that in the same breath; the
 * store calls it where a transaction, or a part of one, is undone: what was read in it never was.
 */
export interface Kept<Key extends unknown[], T> {
  get: (...key: Key) => T
  forget: (...key: Key | []) => void
}

export interface StoreOptions {
  /** A file, or `:memory:`. A damaged file is kept beside it under another name, and a new one begun. */
  path: string
  /** An open database to use instead (it outlives the store): several lives of one simulated hub. */
  database?: Database.Database
  /** Pages that SQLite keeps in memory, in KiB. */
  cacheKb?: number
  checkpoint: Checkpoint
  log: Log
}

/** The driver's own is 16 MB, a fifth of what the hub may take. The system keeps the file's pages besides, where it has room. */
export const CACHE_KB = 512

/**
 * A commit writes every page that it has changed, whole, and an event changes a few bytes in each of a dozen: small pages
 * write a third of what SQLite's usual ones do (measured). A file keeps the size with which it was begun.
 */
const PAGE_BYTES = 1024
/** Pages in the log before they are moved to their places, 4 MB: those that changed often are moved once. */
const LOG_PAGES = 4096

/** Opens the journal and brings its tables up to date. Throws where the file was written by newer software. */
export function openStore(options: StoreOptions): Store {
  const { checkpoint, log, cacheKb = CACHE_KB } = options
  const inFile = options.database === undefined && options.path !== ':memory:'
  const ballastPath = `${options.path}.ballast`
  const db =
    options.database ?? (inFile ? openOnAnyDisk(options.path, ballastPath, log) : new Sqlite(options.path))
  try {
    prepare(db, cacheKb)
  } catch (error) {
    if (!inFile || !isFull(error)) throw error
    log.error(
      { path: options.path, code: error.code },
      'the disk is full: the ballast makes room for the tables',
    )
    rmSync(ballastPath, { force: true })
    prepare(db, cacheKb)
  }
  const ballast: Ballast | undefined = inFile ? openBallast(ballastPath) : undefined
  return createStore(db, ballast, { checkpoint, log, owned: options.database === undefined })
}

/** Sets how the database is written, and brings its tables up to date. */
function prepare(db: Database.Database, cacheKb: number): void {
  db.pragma(`page_size = ${PAGE_BYTES}`)
  db.pragma('journal_mode = WAL')
  // An act or a sale must survive a power cut: the log is flushed at every commit.
  db.pragma('synchronous = FULL')
  db.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  db.pragma('foreign_keys = ON')
  db.pragma(`cache_size = ${-cacheKb}`)
  migrate(db, migrations)
}

/**
 * Opens the file also where the disk has no room for what SQLite lays beside it: with the room of the ballast, and without
 * any alone, so that the hub can at least read what it has to do. Alone it stays until its next start.
 */
function openOnAnyDisk(path: string, ballastPath: string, log: Log): Database.Database {
  const ways: (() => Database.Database)[] = [
    () => openSoundFile(path, log),
    () => {
      rmSync(ballastPath, { force: true })
      return openSoundFile(path, log)
    },
  ]
  for (const way of ways)
    try {
      return way()
    } catch (error) {
      if (!isFull(error)) throw error
      log.error({ path, code: error.code }, 'the disk is full: the journal hardly opens')
    }
  return openSoundFile(path, log, { alone: true })
}

const isFull = (error: unknown): error is InstanceType<typeof Sqlite.SqliteError> =>
  error instanceof Sqlite.SqliteError && ['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE'].includes(error.code)

interface StoreParts {
  checkpoint: Checkpoint
  log: Log
  owned: boolean
}

function createStore(db: Database.Database, ballast: Ballast | undefined, parts: StoreParts): Store {
  const { checkpoint, log, owned } = parts
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const kept: (() => void)[] = []
  let effects: (() => void)[] = []
  let open = false
  let running = false
  let commits = 0
  let full = ballast !== undefined && !ballast.isLaid()

  function transact<T>(work: () => Synchronous<T>): T {
    if (open) return work()
    const earlier = effects
    effects = []
    open = true
    let result: T
    try {
      begin.run()
      result = work()
      checkpoint('journal.before-commit')
      commit.run()
      commits += 1
    } catch (error) {
      effects = earlier
      open = false
      undo('ROLLBACK')
      if (!isFull(error)) throw error
      makeRoom(error.code)
      throw new StoreFullError(`the disk is full (${error.code})`, { cause: error })
    }
    open = false
    effects = [...earlier, ...effects]
    checkpoint('journal.after-commit')
    runEffects()
    return result
  }

  /** An effect may itself transact: what that announces runs after the effects that are already due. */
  function runEffects(): void {
    if (running) return
    running = true
    try {
      for (let next = effects.shift(); next; next = effects.shift()) next()
    } catch (error) {
      effects = []
      throw error
    } finally {
      running = false
    }
  }

  function savepoint<T>(work: () => Synchronous<T>): T {
    const before = effects.length
    db.exec('SAVEPOINT part')
    try {
      const result = work()
      db.exec('RELEASE part')
      return result
    } catch (error) {
      effects.length = before
      undo('ROLLBACK TO part; RELEASE part')
      throw error
    }
  }

  function undo(how: string): void {
    if (db.inTransaction) db.exec(how)
    reread()
  }

  function reread(): void {
    for (const forget of kept) forget()
  }

  function makeRoom(code: string): void {
    if (!full) log.error({ code }, 'the disk is full: the ballast is released and the hub stops selling')
    full = true
    ballast?.release()
    try {
      // What is in the log moves to where it belongs, and the log's own room is used again.
      db.pragma('wal_checkpoint(RESTART)')
    } catch (error) {
      log.warn({ error: String(error) }, 'the journal makes no room')
    }
  }

  return {
    db,
    transact,
    savepoint,
    isWritable() {
      if (open) return true
      begin.run()
      db.exec('ROLLBACK')
      return true
    },
    afterCommit(effect) {
      if (open || running) effects.push(effect)
      else effect()
    },
    keep<T>(read: () => T): Kept<[], T> {
      let found: { value: T } | undefined
      const forget = (): void => {
        found = undefined
      }
      kept.push(forget)
      return { get: () => (found ??= { value: read() }).value, forget }
    },
    keepBy<Key, T>(read: (key: Key) => T): Kept<[key: Key], T> {
      const found = new Map<Key, T>()
      kept.push(() => found.clear())
      return {
        get(key) {
          if (!found.has(key)) found.set(key, read(key))
          return found.get(key)!
        },
        forget(...keys) {
          if (keys.length === 0) found.clear()
          else found.delete(keys[0])
        },
      }
    },
    reread,
    isFull: () => full,
    commits: () => commits,
    relieve() {
      if (!full) return
      full = ballast !== undefined && !ballast.lay()
      if (!full) log.info({}, 'the disk has room again')
    },
    close() {
      if (owned) db.close()
    },
  }
}
