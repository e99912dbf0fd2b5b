import type { DatabaseConnection, QueryExecutorProvider } from 'kysely'

/** The connections of transactions that are under way: Kysely's way to one takes longer than most statements. */
const connections = new WeakMap<object, DatabaseConnection>()

/** The connection of a transaction that is under way; undefined outside of one. */
export const connectionOf = (executor: object): DatabaseConnection | undefined => connections.get(executor)

/** Runs what a transaction does, with its connection at hand. */
export async function withConnection<T>(q: QueryExecutorProvider, work: () => Promise<T>): Promise<T> {
  const executor = q.getExecutor()
  connections.set(executor, await executor.provideConnection((connection) => Promise.resolve(connection)))
  try {
    return await work()
  } finally {
    // From here on Kysely says that the transaction is over.
    connections.delete(executor)
  }
}
