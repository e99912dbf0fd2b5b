import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Tables } from './schema.ts'

const { builtins } = pg.types

/** PostgreSQL. Everything of ours is below 2^53, sums included, so that its 64-bit integers are plain numbers here. */
export function openPostgres(url: string): Kysely<Tables> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === (builtins.INT8 as number) || oid === (builtins.NUMERIC as number)
          ? Number
          : pg.types.getTypeParser(oid, format as 'text'),
    } as pg.CustomTypesConfig,
  })
  // A connection that breaks while idle (a restarted server) is replaced; without a listener it would end the process.
  pool.on('error', () => {})
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}
