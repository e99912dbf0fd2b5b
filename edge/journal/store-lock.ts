import type { Database } from 'better-sqlite3'
import { Sqlite } from './sqlite-driver.ts'

const WAIT_MS = 1000

interface Holder {
  pid: number
  since: string
}

/** Another service uses the journal. */
export class JournalInUse extends Error {
  override readonly name = 'JournalInUse'
}

/** A journal's lock. This process holds it until `release` or its end. */
export interface StoreLock {
  release(): void
}

/**
 * Locks the journal for this process. If another process holds the lock, throws an error that names it. The
 * lock is SQLite's own lock on a file next to the journal. The kernel releases it when a process dies, for
 * any reason. Other processes can still read the journal.
 */
export function lockStore(path: string, holder: Holder): StoreLock {
  const db = new Sqlite(`${path}.lock`, { timeout: WAIT_MS })
  try {
    begin(db)
    introduce(db, holder)
    // Nothing is written in this transaction: it stays open only for the lock.
    begin(db)
  } catch (error) {
    const isLocked = error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')
    const message = isLocked ? `the journal ${path} is in use by ${holderOf(db)}: a hub has one service` : ''
    db.close()
    throw isLocked ? new JournalInUse(message, { cause: error }) : error
  }
  return { release: () => void db.close() }
}

const begin = (db: Database): void => void db.exec('BEGIN IMMEDIATE')

/** Stores the lock's holder for the error message of others. On a full disk the lock also works without it. */
function introduce(db: Database, holder: Holder): void {
  try {
    db.exec('CREATE TABLE IF NOT EXISTS holder (pid INTEGER, since TEXT); DELETE FROM holder')
    db.prepare<[Holder]>('INSERT INTO holder VALUES (@pid, @since)').run(holder)
    db.exec('COMMIT')
  } catch {
    if (db.inTransaction) db.exec('ROLLBACK')
  }
}

function holderOf(db: Database): string {
  try {
    const holder = db.prepare<[], Holder>('SELECT pid, since FROM holder').get()
    return holder ? `process ${holder.pid}, since ${holder.since}` : 'another process'
  } catch {
    return 'another process'
  }
}
