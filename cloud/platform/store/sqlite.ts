import type BetterSqlite3 from 'better-sqlite3'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
  type DatabaseConnection,
  type SqliteDatabase,
} from 'kysely'
import { Sqlite } from './sqlite-driver.ts'

const CACHED_STATEMENTS = 500

/** SQLite: one connection, one transaction at a time, everything durable when it is committed. */
export function openSqlite(url: string, prepared?: BetterSqlite3.Database): SqliteDialect {
  const database = prepared ?? openFile(url.slice('sqlite:'.length))
  // An instance that died in mid-transaction (a simulation hands its database on) leaves it to be undone.
  if (database.inTransaction) database.exec('rollback')
  database.pragma('busy_timeout = 5000')
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  const reader = prepared || database.memory ? undefined : new Sqlite(database.name, { readonly: true })
  return new ImmediateDialect(database, reader)
}

/** Whoever comes first makes the folder: the service, or a command line before its first start. */
function openFile(path: string): BetterSqlite3.Database {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
  return new Sqlite(path)
}

/** Runs a query that only reads, on a connection of its own: it sees what is committed. */
type Read = (text: string, values: readonly unknown[]) => unknown[]

/** Where a database is a file, what only reads need not wait for the one connection that writes, nor for a queue to it. */
export class SqliteFileAdapter extends SqliteAdapter {
  readonly read: Read | undefined

  constructor(read: Read | undefined) {
    super()
    this.read = read
  }

  /** Kysely says no, for the sake of migrations that turn `foreign_keys` off; then one that is killed leaves half a schema. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** For queries that there are few of, and always the same: they stay prepared. */
function createRead(reader: BetterSqlite3.Database): Read {
  const statements = new Map<string, BetterSqlite3.Statement>()
  return (text, values) => {
    let statement = statements.get(text)
    if (!statement) statements.set(text, (statement = reader.prepare(text)))
    return statement.all(values)
  }
}

/** Takes the write lock at the beginning: a transaction that read first could not wait for it (SQLITE_BUSY at once). */
class ImmediateDriver extends SqliteDriver {
  readonly #database: BetterSqlite3.Database

  constructor(database: BetterSqlite3.Database, prepared: SqliteDatabase) {
    super({ database: prepared })
    this.#database = database
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  /** On a full disk SQLite undoes the transaction by itself; then there is nothing to undo, and the cause is what counts. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#database.inTransaction) await super.rollbackTransaction(connection)
  }
}

class ImmediateDialect extends SqliteDialect {
  readonly #database: BetterSqlite3.Database
  readonly #prepared: SqliteDatabase
  readonly #read: Read | undefined

  constructor(database: BetterSqlite3.Database, reader: BetterSqlite3.Database | undefined) {
    const prepared = withStatementCache(database, reader)
    super({ database: prepared })
    this.#database = database
    this.#prepared = prepared
    this.#read = reader && createRead(reader)
  }

  override createAdapter(): SqliteFileAdapter {
    return new SqliteFileAdapter(this.#read)
  }

  override createDriver(): ImmediateDriver {
    return new ImmediateDriver(this.#database, this.#prepared)
  }
}

/** Kysely prepares each statement anew; the ones last used are kept prepared instead. */
function withStatementCache(
  database: BetterSqlite3.Database,
  reader: BetterSqlite3.Database | undefined,
): SqliteDatabase {
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
    close() {
      reader?.close()
      database.close()
    },
  }
}
