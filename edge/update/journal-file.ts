import { Sqlite } from '../journal/sqlite-driver.ts'

export function withJournal<T>(path: string, work: (db: InstanceType<typeof Sqlite>) => T): T {
  const db = new Sqlite(path, { fileMustExist: true, timeout: 5000 })
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** The version of the tables; undefined if the journal is damaged. */
export function versionOf(path: string): number | undefined {
  try {
    return withJournal(path, (db) => Number(db.pragma('user_version', { simple: true })))
  } catch {
    return undefined
  }
}
