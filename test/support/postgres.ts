import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool } from 'pg'

/** The address of another database of the server at `url`. */
export function databaseAt(url: string, name: string): string {
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

/** Runs one statement on the server at `url`, over a separate connection. */
export async function administrate(url: string, statement: string): Promise<void> {
  const admin = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 1 }) }),
  })
  try {
    await sql.raw(statement).execute(admin)
  } finally {
    await admin.destroy()
  }
}
