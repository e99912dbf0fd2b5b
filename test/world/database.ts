import type BetterSqlite3 from 'better-sqlite3'
import { sql } from 'kysely'
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
  const name = `larder_test_${randomHex(systemRuntime().random, 8)}`
  let address: string
  let current: CloudDatabase | undefined
  beforeAll(async () => {
    const { administrate, databaseAt } = await import('../support/postgres.ts')
    address = databaseAt(url, name)
    await administrate(url, `create database ${name}`)
    const database = openDatabase({ url: address })
    await database.migrate()
    await database.close()
  })
  afterAll(async () => {
    await current?.close()
    const { administrate } = await import('../support/postgres.ts')
    await administrate(url, `drop database ${name} with (force)`)
  })
  return async (options) => {
    await current?.close()
    current = openDatabase({ url: address, pools: patient, ...options })
    await empty(current)
    return current
  }
}

/**
 * Empties every table, the youngest first because it references older ones, and resets the ids. Much faster
 * than TRUNCATE.
 */
async function empty({ kysely }: CloudDatabase): Promise<void> {
  await sql`
    do $$ declare t record; begin
      for t in select c.oid::regclass as name from pg_class c where c.relnamespace = 'public'::regnamespace
        and c.relkind = 'r' and c.relname not like 'kysely_%' and c.relname <> 'larder_schema' order by c.oid desc
      loop execute format('delete from %s', t.name); end loop;
      for t in select c.oid::regclass as name from pg_class c where c.relnamespace = 'public'::regnamespace
        and c.relkind = 'S'
      loop perform setval(t.name, 1, false); end loop;
    end $$`.execute(kysely)
}
