import { sql, type Kysely } from 'kysely'
import { DatabaseUnavailable } from './outage.ts'
import type { Tables } from './schema.ts'

/** Other clients of the pooler may hide the first tries. */
const TRIES = 5

const pidOf = async (session: Kysely<Tables>): Promise<number> =>
  (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(session)).rows[0]!.pid

/**
 * Throws if a pooler stands between that gives the server's sessions to other clients between two transactions (PgBouncer with
 * `pool_mode = transaction`). Settings of a session, prepared statements and advisory locks would then belong to others.
 *
 * In session mode two connections never share a server process, and neither changes it. In transaction mode the second
 * connection gets the process that the first one has just given back, or the first one gets another process.
 */
export async function refuseSharedSessions(kysely: Kysely<Tables>): Promise<void> {
  const areShared = await kysely.connection().execute((first) =>
    kysely.connection().execute(async (second) => {
      for (let attempt = 0; attempt < TRIES; attempt += 1) {
        const [mine, again] = [await pidOf(first), await pidOf(first)]
        const [other, later] = await second
          .transaction()
          .execute(async (transaction) => [await pidOf(transaction), await pidOf(first)])
        if (mine !== again || mine !== later || mine === other) return true
      }
      return false
    }),
  )
  if (areShared)
    throw new DatabaseUnavailable(
      'a connection pooler in transaction mode stands between, and the service needs sessions of its own: set pool_mode = session for this database in PgBouncer, or name the server itself',
    )
}
