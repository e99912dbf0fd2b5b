import BetterSqlite3 from 'better-sqlite3'
import {
  CompiledQuery,
  Kysely,
  SqliteDialect,
  SqliteDriver,
  type DatabaseConnection,
  type SqliteDatabase,
} from 'kysely'
import type { Tables } from './schema.ts'

const CACHED_STATEMENTS = 500

/** SQLite: one connection, one transaction at a time, everything durable when it is committed. */
export function openSqlite(url: string, prepared?: BetterSqlite3.Database): Kysely<Tables> {
  const database = prepared ?? new BetterSqlite3(url.slice('sqlite:'.length))
  // An instance that died in mid-transaction (a simulation hands its database on) leaves it to be undone.
  if (database.inTransaction) database.exec('rollback')
  database.pragma('busy_timeout = 5000')
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  return new Kysely<Tables>({ dialect: new ImmediateDialect(withStatementCache(database)) })
}

/** Takes the write lock at the beginning: a transaction that read first could not wait for it (SQLITE_BUSY at once). */
class ImmediateDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }
}

class ImmediateDialect extends SqliteDialect {
  readonly #database: SqliteDatabase

  constructor(database: SqliteDatabase) {
    super({ database })
    this.#database = database
  }

  override createDriver(): ImmediateDriver {
    return new ImmediateDriver({ database: this.#database })
  }
}

/** Kysely prepares each statement anew; the ones last used are kept prepared instead. */
function withStatementCache(database: BetterSqlite3.Database): SqliteDatabase {
  const statements = new Map<string, BetterSqlite3.Statement>()
  return {
    prepare(text) {
      const known = statements.get(text)
      const statement = known ?? database.prepare(text)
      if (known) statements.delete(text)
      statements.set(text, statement)
      if (statements.size > CACHED_STATEMENTS) statements.delete(statements.keys().next().value!)
      return statement
    },
    close: () => void database.close(),
  }
}
