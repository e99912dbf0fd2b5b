import { Kysely, PostgresDialect } from 'kysely'
import { Pool, types, type CustomTypesConfig } from 'pg'
import type { Tables } from './schema.ts'

const { INT8, NUMERIC } = types.builtins

/** PostgreSQL. Everything of ours is below 2^53, sums included, so that its 64-bit integers are plain numbers here. */
export function openPostgres(url: string): Kysely<Tables> {
  const pool = new Pool({ connectionString: url, max: 10, types: plainNumbers })
  // A connection that breaks while idle (a restarted server) is replaced; without a listener it would end the process.
  pool.on('error', () => {})
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}

const plainNumbers: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === INT8 || oid === NUMERIC
      ? Number
      : (types.getTypeParser(oid, format) as (value: string) => unknown),
}
