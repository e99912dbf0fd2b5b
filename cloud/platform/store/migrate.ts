import { DEFAULT_MIGRATION_TABLE, Migrator, sql, type Kysely, type Migration } from 'kysely'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import {
  createSchemaTable,
  digestOf,
  factsQuery,
  judgeSchema,
  SCHEMA_TABLE,
  tableDigests,
  type ExpectedSchema,
  type SchemaFact,
  type StoredSchema,
} from './schema-check.ts'
import { schemaStatements, tables, type Tables } from './schema.ts'
import { indexStatement, type DatabaseKind, type Table } from './table.ts'

/** One numbered step of a schema that has been released: what changes a database that an older version has made. */
export interface NumberedMigration {
  /** `0002-nicknames` */
  name: string
  statements: (kind: DatabaseKind) => readonly string[]
  /**
   * Indexes of tables that may be large, as these declare them: on PostgreSQL they are made after the transaction, while others
   * write on. One that a later version no longer declares is not made any more. An index that changes gets another name.
   */
  concurrently?: readonly string[]
}

type Declared = Readonly<Record<string, Table>>

/** What a schema is made of. */
interface Versions {
  declared: Declared
  first: readonly string[]
  numbered: readonly NumberedMigration[]
}

/**
 * The migrations after the first, which makes the tables as they are declared: a new database needs no other. A released
 * table is changed by changing its declaration and adding a migration here that changes the table in older databases. The
 * test of this file compares the two, so that they cannot differ. A migration that has been released is never changed.
 * Processes of the version before serve on meanwhile: a migration adds, and takes away only what no longer had a reader in it.
 * SQLite cannot leave `foreign_keys` within a transaction: a migration that makes a table anew defers them instead.
 */
const numberedMigrations: readonly NumberedMigration[] = []

const FIRST = '0001-first'
export const SCHEMA_VERSION = numberedMigrations.at(-1)?.name ?? FIRST

/**
 * Brings the schema up to date, in one transaction: a process that is killed here leaves either the old schema or the new
 * one. Several processes may do so at once: one works, the others wait for it. Large indexes follow, outside of it.
 */
export async function migrate(
  kysely: Kysely<Tables>,
  kind: DatabaseKind,
  {
    declared = tables,
    first = schemaStatements(kind, declared),
    numbered = numberedMigrations,
  }: Partial<Versions> = {},
): Promise<void> {
  const versions = { declared, first, numbered }
  const late = numbered.flatMap(({ concurrently = [] }) => indexesOf(declared, concurrently))
  const migrator = new Migrator({
    db: kysely,
    provider: { getMigrations: () => Promise.resolve(migrationsFor(kind, versions)) },
  })
  // The usual case takes no lock: command lines come and go beside the service.
  const known = await migrator.getMigrations()
  if (known.some(({ executedAt }) => executedAt !== undefined)) await compareSchema(kysely, kind, versions)
  if (known.some(({ executedAt }) => executedAt === undefined)) {
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined)
      throw error instanceof Error ? error : new Error('migration failed', { cause: error })
    // Another process, of another build, may have made the schema meanwhile.
    await compareSchema(kysely, kind, versions)
  }
  if (kind === 'postgres' && late.length > 0) await makeIndexes(kysely, late)
}

/** What the declared schema of this build is, for a database of this kind. */
export const expectedSchema = (
  kind: DatabaseKind,
  { first, numbered }: Pick<Versions, 'first' | 'numbered'> = {
    first: schemaStatements(kind),
    numbered: numberedMigrations,
  },
): ExpectedSchema => ({
  migrations: [FIRST, ...numbered.map(({ name }) => name)],
  declared: digestOf(first),
})

/** Reads the names of the executed migrations, and what the last one stored. */
export const migrationsQuery = `select name from ${DEFAULT_MIGRATION_TABLE} order by name`
export const storedQuery = `select declared, tables, software from ${SCHEMA_TABLE}`

/** Indexes that are made after the transaction of their migration. */
export const lateIndexes = (numbered: readonly NumberedMigration[] = numberedMigrations): string[] =>
  numbered.flatMap(({ concurrently = [] }) => concurrently)

/** Whether no build has made its tables in this database yet. */
export const hasNoTables = (kysely: Kysely<Tables>, kind: DatabaseKind): Promise<boolean> =>
  lacksTable(kysely, kind, DEFAULT_MIGRATION_TABLE)

async function lacksTable(kysely: Kysely<Tables>, kind: DatabaseKind, name: string): Promise<boolean> {
  const query =
    kind === 'sqlite'
      ? `select count(*) as stored from sqlite_master where name = '${name}'`
      : `select count(*)::int as stored from pg_class where oid = to_regclass('${name}')`
  const { rows } = await sql.raw<{ stored: number }>(query).execute(kysely)
  return Number(rows[0]?.stored) === 0
}

async function compareSchema(kysely: Kysely<Tables>, kind: DatabaseKind, versions: Versions): Promise<void> {
  const rows = async <R>(query: string): Promise<R[]> => (await sql.raw<R>(query).execute(kysely)).rows
  const isUnknown = await lacksTable(kysely, kind, SCHEMA_TABLE)
  judgeSchema(
    {
      migrations: (await rows<{ name: string }>(migrationsQuery)).map(({ name }) => name),
      stored: isUnknown ? undefined : (await rows<StoredSchema>(storedQuery))[0],
      facts: await rows<SchemaFact>(factsQuery(kind, lateIndexes(versions.numbered))),
    },
    expectedSchema(kind, versions),
  )
}

/** Stores what the declared schema is, and how the tables are now, in the transaction of a migration. */
async function storeSchema(
  db: Kysely<unknown>,
  kind: DatabaseKind,
  { declared, first, numbered }: Versions,
): Promise<void> {
  await sql.raw(createSchemaTable).execute(db)
  const { rows } = await sql.raw<SchemaFact>(factsQuery(kind, lateIndexes(numbered))).execute(db)
  const digests = JSON.stringify(tableDigests(rows, Object.keys(declared)))
  await sql`delete from ${sql.table(SCHEMA_TABLE)}`.execute(db)
  await sql`insert into ${sql.table(SCHEMA_TABLE)} (id, declared, tables, software)
    values (1, ${digestOf(first)}, ${digests}, ${PRODUCT_VERSION})`.execute(db)
}

function migrationsFor(kind: DatabaseKind, versions: Versions): Record<string, Migration> {
  const { declared, first, numbered } = versions
  let isNew = false
  const run = async (db: Kysely<unknown>, statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await sql.raw(statement).execute(db)
    await storeSchema(db, kind, versions)
  }
  // SQLite has one writer at a time anyway.
  const indexes = (names: readonly string[]): string[] =>
    kind === 'sqlite' ? indexesOf(declared, names).map(({ statement }) => statement()) : []
  const later = numbered.map(({ name, statements, concurrently = [] }): [string, Migration] => [
    name,
    {
      up: async (db) => (isNew ? undefined : run(db, [...statements(kind), ...indexes(concurrently)])),
    },
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

interface LateIndex {
  name: string
  statement: (how?: 'concurrently ') => string
}

const indexesOf = (declared: Declared, names: readonly string[]): LateIndex[] =>
  Object.entries(declared).flatMap(([table, { indexes }]) =>
    indexes
      .filter(({ name }) => names.includes(name))
      .map((index) => ({ name: index.name, statement: (how) => indexStatement(table, index, how) })),
  )

/** Of all processes that share the server's database, one makes indexes at a time. */
const INDEX_LOCK = 7_106_119_101_020

/**
 * Makes the indexes that are not there yet. A process that comes while another one makes them goes on without: a statement that
 * waited for the lock would keep the index waiting, which waits for all statements that began before it. An interrupted
 * process leaves an index that the server calls invalid: it slows writers and serves no query, and is made anew.
 */
async function makeIndexes(kysely: Kysely<Tables>, indexes: readonly LateIndex[]): Promise<void> {
  const missing = await missingOf(kysely, indexes)
  if (missing.length === 0) return
  await kysely.connection().execute(async (db) => {
    const locked = await sql<{
      is_ours: boolean
    }>`select pg_try_advisory_lock(${INDEX_LOCK}) as is_ours`.execute(db)
    if (!locked.rows[0]!.is_ours) return
    try {
      for (const { name, statement } of await missingOf(db, missing)) {
        await sql.raw(`drop index concurrently if exists ${name}`).execute(db)
        await sql.raw(statement('concurrently ')).execute(db)
      }
    } finally {
      // It ends with its connection, too.
      await sql`select pg_advisory_unlock(${INDEX_LOCK})`.execute(db).catch(() => {})
    }
  })
}

async function missingOf(db: Kysely<Tables>, indexes: readonly LateIndex[]): Promise<LateIndex[]> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indisvalid and c.relnamespace = current_schema()::regnamespace`.execute(db)
  const valid = new Set(rows.map(({ name }) => name))
  return indexes.filter(({ name }) => !valid.has(name))
}
