import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool } from 'pg'

/** The address of another database of the server at `url`. */
export function databaseAt(url: string, name: string): string {
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

const administrator = (url: string): Kysely<unknown> =>
  new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 1 }) }) })

/** Runs one statement on the server at `url`, over a separate connection. */
export async function administrate(url: string, statement: string): Promise<void> {
  const admin = administrator(url)
  try {
    await sql.raw(statement).execute(admin)
  } finally {
    await admin.destroy()
  }
}

/** The prefix of the databases of this run of tests: its temporary folder has a name of its own. */
const prefix = (): string =>
  `larder_test_${basename(tmpdir())
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')}_`

/** The name of a database that is dropped at the end of the run. */
export const nameInRun = (name: string): string => `${prefix()}${name}`

/** Drops the databases of this run: workers are killed before they could do it. */
export async function dropDatabasesOfRun(url: string): Promise<void> {
  const admin = administrator(url)
  try {
    const { rows } = await sql<{
      datname: string
    }>`select datname from pg_database where starts_with(datname, ${prefix()})`.execute(admin)
    for (const { datname } of rows)
      await sql`drop database if exists ${sql.id(datname)} with (force)`.execute(admin)
  } finally {
    await admin.destroy()
  }
}
