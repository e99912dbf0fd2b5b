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

/** A numbered step of a released schema. It changes databases that an older version made. */
export interface NumberedMigration {
  /** `0002-nicknames` */
  name: string
  statements: (kind: DatabaseKind) => readonly string[]
  /**
   * Names of declared indexes on possibly large tables. PostgreSQL builds them after the transaction while others
   * write. An index that a later version no longer declares is skipped. A changed index gets another name.
   */
  concurrently?: readonly string[]
}

type Declared = Readonly<Record<string, Table>>

/** The first migration and the numbered ones. */
interface Versions {
  declared: Declared
  first: readonly string[]
  numbered: readonly NumberedMigration[]
}

/**
 * The migrations after the first, which is released. A new database gets the tables as declared and needs no other one.
 * To change a released table, change its declaration and add a migration here for older databases. The test of this
 * file compares both results. Never change a released migration.
 *
 * Processes of the previous version continue to serve during a migration. A migration therefore only adds, and removes
 * only what the previous version no longer reads. SQLite cannot turn `foreign_keys` off within a transaction: a
 * migration that rebuilds a table defers them instead.
 */
const numberedMigrations: readonly NumberedMigration[] = [
  {
    name: '0002-hub-people',
    statements: (kind) => {
      const [int, storage] = kind === 'sqlite' ? ['integer', ' strict'] : ['bigint', '']
      return [
        `create table hub_people (hub_id ${int} not null references hubs (id), name text not null, pin_digest text not null, created_at ${int} not null, primary key (hub_id, name))${storage}`,
      ]
    },
  },
  {
    name: '0003-audit-lists',
    statements: () => [],
    concurrently: ['time', 'hub_time', 'action', 'actor', 'object'].map((by) => `audit_log_by_${by}`),
  },
]

const FIRST = '0001-first'
export const SCHEMA_VERSION = numberedMigrations.at(-1)?.name ?? FIRST

/**
 * Updates the schema in one transaction: a process that is killed here leaves either the old or the new schema. If
 * several processes migrate at once, one works and the others wait. Large indexes follow outside of the transaction.
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
  // The usual case takes no lock, because command lines often run beside the service.
  const known = await migrator.getMigrations()
  if (known.some(({ executedAt }) => executedAt !== undefined)) await compareSchema(kysely, kind, versions)
  if (known.some(({ executedAt }) => executedAt === undefined)) {
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined)
      throw error instanceof Error ? error : new Error('migration failed', { cause: error })
    // A process of another build may have changed the schema in between.
    await compareSchema(kysely, kind, versions)
  }
  if (kind === 'postgres' && late.length > 0) await makeIndexes(kysely, late)
}

/**
 * Compares a database with this build, without a change. Throws `SchemaRefused` if the build must not use it. Returns
 * whether the next start migrates it.
 */
export async function needsMigration(kysely: Kysely<Tables>, kind: DatabaseKind): Promise<boolean> {
  await compareSchema(kysely, kind, {
    declared: tables,
    first: schemaStatements(kind),
    numbered: numberedMigrations,
  })
  const { rows } = await sql.raw<{ name: string }>(migrationsQuery).execute(kysely)
  return rows.at(-1)?.name !== SCHEMA_VERSION
}

/** The declared schema of this build, for one kind of database. */
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

/** Selects the names of the executed migrations, and the row that the last one stored. */
export const migrationsQuery = `select name from ${DEFAULT_MIGRATION_TABLE} order by name`
export const storedQuery = `select declared, tables, software from ${SCHEMA_TABLE}`

/** Indexes that are built after the transaction of their migration. */
export const lateIndexes = (numbered: readonly NumberedMigration[] = numberedMigrations): string[] =>
  numbered.flatMap(({ concurrently = [] }) => concurrently)

/** Whether the database has no tables of any build yet. */
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

/** Stores digests of the declared schema and of the actual tables, in the transaction of a migration. */
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

/** Advisory lock: only one process per server database builds indexes at a time. */
const INDEX_LOCK = 7_106_119_101_020

/**
 * Builds missing indexes. If another process is building them, this one continues without them. It must not wait for
 * the lock: the index build waits for all statements that started earlier, and so for the waiting one. An interrupted
 * build leaves an invalid index, which slows writers and serves no query. It is built again.
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
      // The lock also ends with its connection.
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
