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
  const found = await areShared(kysely).catch((error: unknown) =>
    error instanceof DatabaseUnavailable ? error.message : Promise.reject(error as Error),
  )
  if (found === false) return
  // In statement mode PgBouncer ends a connection that begins a transaction.
  const why = found === true ? 'gives its sessions to others between transactions' : `ended one (${found})`
  throw new DatabaseUnavailable(
    `a connection pooler stands between and ${why}, as PgBouncer does in transaction mode: set pool_mode = session for this database, or name the server itself`,
  )
}

const areShared = (kysely: Kysely<Tables>): Promise<boolean> =>
  kysely.connection().execute((first) =>
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
