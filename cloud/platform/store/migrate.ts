import { Migrator, sql, type Kysely, type Migration } from 'kysely'
import { schemaStatements, type Tables } from './schema.ts'
import type { DatabaseKind } from './table.ts'

/** One numbered step of a schema that has been released: what changes a database that an older version has made. */
export interface NumberedMigration {
  /** `0002-nicknames` */
  name: string
  statements: (kind: DatabaseKind) => readonly string[]
}

/**
 * The migrations after the first, which makes the tables as they are declared: a new database needs no other. A released
 * table is changed by changing its declaration and adding a migration here that changes the table in older databases. The
 * test of this file compares the two, so that they cannot differ. A migration that has been released is never changed.
 * SQLite cannot leave `foreign_keys` within a transaction: a migration that makes a table anew defers them instead.
 */
const numberedMigrations: readonly NumberedMigration[] = []

const FIRST = '0001-first'
export const SCHEMA_VERSION = numberedMigrations.at(-1)?.name ?? FIRST

/**
 * Brings the schema up to date, in one transaction: a process that is killed here leaves either the old schema or the new
 * one. Several processes may do so at once: one works, the others wait for it.
 */
export async function migrate(
  kysely: Kysely<Tables>,
  kind: DatabaseKind,
  { first = schemaStatements(kind), numbered = numberedMigrations } = {},
): Promise<void> {
  const migrator = new Migrator({
    db: kysely,
    provider: { getMigrations: () => Promise.resolve(migrationsFor(kind, first, numbered)) },
  })
  // The usual case takes no lock: command lines come and go beside the service.
  const known = await migrator.getMigrations()
  if (known.every(({ executedAt }) => executedAt !== undefined)) return
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined)
    throw error instanceof Error ? error : new Error('migration failed', { cause: error })
}

function migrationsFor(
  kind: DatabaseKind,
  first: readonly string[],
  numbered: readonly NumberedMigration[],
): Record<string, Migration> {
  let isNew = false
  const run = async (db: Kysely<unknown>, statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await sql.raw(statement).execute(db)
  }
  const later = numbered.map(({ name, statements }): [string, Migration] => [
    name,
    { up: async (db) => (isNew ? undefined : run(db, statements(kind))) },
  ])
  return Object.fromEntries([
    [
      FIRST,
      {
        up(db: Kysely<unknown>) {
          isNew = true
          return run(db, first)
        },
      },
    ],
    ...later,
  ])
}
