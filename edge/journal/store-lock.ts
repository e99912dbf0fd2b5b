import type { Database } from 'better-sqlite3'
import { Sqlite } from './sqlite-driver.ts'

const WAIT_MS = 1000

interface Holder {
  pid: number
  since: string
}

/** Another service has the journal. */
export class JournalInUse extends Error {
  override readonly name = 'JournalInUse'
}

/** A journal's lock, held by this process until `release`, or its end. */
export interface StoreLock {
  release(): void
}

/**
 * Makes this process the journal's only one, or throws and says who has it. The lock is SQLite's own on a file beside the
 * journal: the kernel takes it from a process that dies, however it does. The journal itself can be read by others.
 */
export function lockStore(path: string, holder: Holder): StoreLock {
  const db = new Sqlite(`${path}.lock`, { timeout: WAIT_MS })
  try {
    begin(db)
    introduce(db, holder)
    // Nothing is written in it: it stays open for the lock alone.
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

/** Writes down who has the lock, for whom it is refused. On a full disk the lock holds without. */
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
