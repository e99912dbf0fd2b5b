import type BetterSqlite3 from 'better-sqlite3'
import { sql, type Dialect, type Driver } from 'kysely'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { defaultLimits, type DatabaseLimits } from '../../cloud/platform/settings/limits.ts'
import {
  openDatabase,
  type CloudDatabase,
  type DatabaseOptions,
} from '../../cloud/platform/store/database.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'

/** Opens an empty, migrated database; the previous one of the same file is deleted then. */
export type OpenDatabase = (
  options?: Pick<DatabaseOptions, 'checkpoint' | 'isBusy' | 'pools'>,
) => Promise<CloudDatabase>

const postgresUrl = process.env['TEST_POSTGRES_URL']
const required = process.env['REQUIRE_SERVICES'] === '1'

/** Declares a suite once for each database. PostgreSQL is the server at TEST_POSTGRES_URL. */
export function onEachDatabase(
  name: string,
  suite: (open: OpenDatabase, kind: CloudDatabase['kind']) => void,
): void {
  describe(`${name} [SQLite]`, () => suite(sqliteOpener(), 'sqlite'))
  if (postgresUrl !== undefined)
    describe(`${name} [PostgreSQL]`, () => suite(postgresOpener(postgresUrl), 'postgres'))
  else if (required)
    test(`${name} [PostgreSQL]`, () => Promise.reject(new Error('TEST_POSTGRES_URL is not set')))
  else test.skip(`${name} [PostgreSQL]: TEST_POSTGRES_URL is not set`, () => {})
}

let template: Buffer | undefined

/** An empty, migrated SQLite database in memory. The schema is created once and copied afterwards. */
export async function emptySqlite(): Promise<BetterSqlite3.Database> {
  if (!template) {
    const database = new Sqlite(':memory:')
    const opened = openDatabase({ url: 'sqlite::memory:', sqlite: database })
    await opened.migrate()
    template = database.serialize()
    await opened.close()
  }
  return new Sqlite(template)
}

function sqliteOpener(): OpenDatabase {
  let current: CloudDatabase | undefined
  afterAll(() => current?.close())
  return async (options) => {
    await current?.close()
    current = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite(), ...options })
    return current
  }
}

/** On a machine that is busy with other tests no time-out should fire; tests of time-outs set their own. */
const patient = Object.fromEntries(
  Object.entries(defaultLimits.database).map(([use, pool]) => [
    use,
    { ...pool, waitMs: 60_000, lockMs: 60_000, statementMs: 60_000 },
  ]),
) as unknown as DatabaseLimits

function postgresOpener(url: string): OpenDatabase {
  let shared: SharedDatabase
  let current: CloudDatabase | undefined
  beforeAll(async () => {
    shared = await (sharedDatabase ??= createShared(url))
  })
  afterAll(async () => {
    await current?.close()
    if ((await shared.schema()) === shared.created) return
    sharedDatabase = undefined
    await shared.drop()
  })
  return async (options = {}) => {
    await current?.close()
    const isPlain = options.pools === undefined && options.isBusy === undefined
    current = openDatabase({
      url: shared.address,
      pools: patient,
      ...(isPlain && { through: shared.connections.through() }),
      ...options,
    })
    await empty(current)
    return current
  }
}

/** A database on PostgreSQL for all suites of a worker, until one of them changes its schema. */
interface SharedDatabase {
  address: string
  connections: ReturnType<typeof keptConnections>
  /** The schema after the migrations. */
  created: string
  schema(): Promise<string>
  drop(): Promise<void>
}

let sharedDatabase: Promise<SharedDatabase> | undefined

async function createShared(url: string): Promise<SharedDatabase> {
  const { administrate, databaseAt, nameInRun } = await import('../support/postgres.ts')
  const name = nameInRun(randomHex(systemRuntime().random, 8))
  const address = databaseAt(url, name)
  await administrate(url, `create database ${name}`)
  const connections = keptConnections()
  const database = openDatabase({ url: address, pools: patient, through: connections.through() })
  await database.migrate()
  const schema = async (): Promise<string> => {
    const { rows } = await sql<{ schema: string }>`
      select md5(string_agg(concat_ws(' ', c.oid, c.relname, a.attname, a.atttypid, a.attnotnull), ',' order by c.oid, a.attnum)) as schema
      from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      where c.relnamespace = 'public'::regnamespace`.execute(database.kysely)
    return rows[0]!.schema
  }
  return {
    address,
    connections,
    created: await schema(),
    schema,
    async drop() {
      await connections.end()
      await administrate(url, `drop database ${name} with (force)`)
    },
  }
}

/**
 * Connections that stay open when their database is closed, for the next one. A new session of PostgreSQL reads the catalogue again:
 * a third of a test's time.
 */
function keptConnections() {
  const drivers: Driver[] = []
  const begun = new Map<Driver, Promise<void>>()
  const kept = (driver: Driver): Driver => ({
    init() {
      if (!begun.has(driver)) begun.set(driver, driver.init())
      return begun.get(driver)!
    },
    acquireConnection: () => driver.acquireConnection(),
    releaseConnection: (connection) => driver.releaseConnection(connection),
    beginTransaction: (connection, settings) => driver.beginTransaction(connection, settings),
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    destroy: () => Promise.resolve(),
  })
  return {
    /** Wraps the dialects of one database. It opens its pools always in the same order. */
    through() {
      let pools = 0
      return (dialect: Dialect): Dialect => {
        const driver = kept((drivers[pools++] ??= dialect.createDriver()))
        return {
          createAdapter: () => dialect.createAdapter(),
          createIntrospector: (db) => dialect.createIntrospector(db),
          createQueryCompiler: () => dialect.createQueryCompiler(),
          createDriver: () => driver,
        }
      }
    },
    end: () => Promise.all(drivers.map((driver) => driver.destroy())),
  }
}

/** Above this size of a table, in bytes, TRUNCATE is faster than DELETE, which checks each row against the tables that may refer to it. */
const LARGE = 1_000_000

/** Empties every table, the youngest first because it references older ones, and resets the ids. */
async function empty({ kysely }: CloudDatabase): Promise<void> {
  await sql`
    do $$ declare t record; tables text; largest bigint; begin
      select string_agg(c.oid::regclass::text, ', '), max(pg_relation_size(c.oid)) into tables, largest from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
        and c.relname not like 'kysely_%' and c.relname <> 'larder_schema';
      if largest > ${sql.lit(LARGE)} then execute 'truncate ' || tables;
      else
        for t in select c.oid::regclass as name from pg_class c where c.relnamespace = 'public'::regnamespace
          and c.relkind = 'r' and c.relname not like 'kysely_%' and c.relname <> 'larder_schema' order by c.oid desc
        loop execute format('delete from %s', t.name); end loop;
      end if;
      for t in select c.oid::regclass as name from pg_class c where c.relnamespace = 'public'::regnamespace
        and c.relkind = 'S'
      loop perform setval(t.name, 1, false); end loop;
    end $$`.execute(kysely)
}
