import { Migrator, sql, type Kysely, type Migration } from 'kysely'
import { cloudMigrations } from './migrations/all.ts'
import { dialects, type DatabaseKind } from './migrations/migration.ts'
import type { Tables } from './schema.ts'

/** Brings the schema up to date. Several processes may do so at once: one works, the others wait for it. */
export async function migrate(kysely: Kysely<Tables>, kind: DatabaseKind): Promise<void> {
  const migrator = new Migrator({
    db: kysely,
    provider: { getMigrations: () => Promise.resolve(migrationsFor(kind)) },
  })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined)
    throw error instanceof Error ? error : new Error('migration failed', { cause: error })
}

function migrationsFor(kind: DatabaseKind): Record<string, Migration> {
  return Object.fromEntries(
    cloudMigrations.map(({ name, statements }) => [
      name,
      {
        async up(db: Kysely<unknown>): Promise<void> {
          for (const statement of statements(dialects[kind])) await sql.raw(statement).execute(db)
        },
      },
    ]),
  )
}
