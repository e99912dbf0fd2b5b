import type { Database } from 'better-sqlite3'

/** One step of the journal's tables. Never changed once released; its place in the list is its number. */
export interface Migration {
  name: string
  sql: string
}

/** Applies the migrations that the database lacks, each in its own transaction. */
export function migrate(db: Database, migrations: readonly Migration[]): void {
  const done = Number(db.pragma('user_version', { simple: true }))
  if (done > migrations.length)
    throw new Error(
      `the journal has version ${done}, this software knows ${migrations.length}: it was written by newer software`,
    )
  for (const [index, migration] of migrations.entries()) {
    if (index < done) continue
    db.transaction(() => {
      db.exec(migration.sql)
      db.pragma(`user_version = ${index + 1}`)
    }).immediate()
  }
}
