import type { DatabaseConnection, QueryExecutorProvider } from 'kysely'

/** The connections of running transactions. Kysely's own way to one takes longer than most statements. */
const connections = new WeakMap<object, DatabaseConnection>()

/** The connection of a running transaction; undefined outside of one. */
export const connectionOf = (executor: object): DatabaseConnection | undefined => connections.get(executor)

/** Runs a transaction's work with its connection registered. */
export async function withConnection<T>(q: QueryExecutorProvider, work: () => Promise<T>): Promise<T> {
  const executor = q.getExecutor()
  connections.set(executor, await executor.provideConnection((connection) => Promise.resolve(connection)))
  try {
    return await work()
  } finally {
    // From here on Kysely treats the transaction as finished.
    connections.delete(executor)
  }
}
