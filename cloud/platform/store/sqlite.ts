import type BetterSqlite3 from 'better-sqlite3'
import * as files from 'node:fs'
import { dirname } from 'node:path'
import {
  SqliteAdapter,
  SqliteDialect,
  type Driver,
  ColumnNode,
  PrimitiveValueListNode,
  ReferenceNode,
  SqliteQueryCompiler,
  ValueListNode,
  ValueNode,
  type BinaryOperationNode,
  type OperationNode,
} from 'kysely'
import { makeFolder } from '../../../protocol/model/make-folder.ts'
import { expectedSchema, lateIndexes, migrationsQuery, storedQuery } from './migrate.ts'
import { factsQuery, judgeSchema, SCHEMA_TABLE, type SchemaFact, type StoredSchema } from './schema-check.ts'
import { SqliteConnection, type Beside, type Read } from './sqlite-connection.ts'
import { Sqlite } from './sqlite-driver.ts'
import { tables } from './schema.ts'
import type { Table } from './table.ts'

/**
 * Log size in pages at which a commit writes the log into the database, and waits for it. A payment changes about sixty
 * pages, many of them the same as the previous payment's. A longer log therefore writes them less often.
 */
const CHECKPOINT_PAGES = 4000
/** Maximum number of transactions per commit. The first of them waits for the last. */
const GROUPED_COMMITS = 16

export interface SqliteOptions {
  /** An open database that replaces the one of the address. */
  sqlite?: BetterSqlite3.Database | undefined
  /** Maximum number of transactions per commit. */
  grouped?: number
  /** Log size in pages at which a commit writes the log into the database. */
  checkpointPages?: number
  /**
   * Whether this process serves many callers. A commit then waits one round of the event loop for ready transactions.
   */
  isBusy?: boolean
}

/** SQLite: one connection, one transaction at a time, durable at commit. */
export function openSqlite(
  url: string,
  {
    sqlite: prepared,
    grouped = GROUPED_COMMITS,
    checkpointPages = CHECKPOINT_PAGES,
    isBusy = false,
  }: SqliteOptions,
): SqliteDialect {
  const database = prepared ?? openFile(url.slice('sqlite:'.length))
  // An instance that died during a transaction leaves it open (a simulation passes its database on).
  if (database.inTransaction) database.exec('rollback')
  database.pragma('busy_timeout = 5000')
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma(`wal_autocheckpoint = ${checkpointPages}`)
  database.pragma('foreign_keys = ON')
  const reader = prepared || database.memory ? undefined : new Sqlite(database.name, { readonly: true })
  return new FileDialect(database, { reader, grouped, soon: isBusy ? setImmediate : undefined })
}

/** The first user creates the folder: the service, or a command line before the service's first start. */
function openFile(path: string): BetterSqlite3.Database {
  if (path !== ':memory:') {
    makeFolder(files, dirname(path))
    if (files.existsSync(path)) refuseOtherSchema(path)
  }
  return new Sqlite(path)
}

/**
 * Throws `SchemaRefused` if another build made the file. `migrate` also compares, but on a writable connection: its
 * closing moves the log into the file. A refused file must stay unchanged.
 */
function refuseOtherSchema(path: string): void {
  const database = new Sqlite(path, { readonly: true })
  try {
    const has = (table: string): boolean =>
      database.prepare('select 1 from sqlite_master where name = ?').get(table) !== undefined
    if (!has('kysely_migration')) return
    judgeSchema(
      {
        migrations: database.prepare<[], string>(migrationsQuery).pluck().all(),
        stored: has(SCHEMA_TABLE) ? database.prepare<[], StoredSchema>(storedQuery).get() : undefined,
        facts: database.prepare<[], SchemaFact>(factsQuery('sqlite', lateIndexes())).all(),
      },
      expectedSchema('sqlite'),
    )
  } finally {
    database.close()
  }
}

/** If a database is a file, read-only queries need not wait for the single writing connection or its queue. */
export class SqliteFileAdapter extends SqliteAdapter {
  readonly read: Read | undefined

  constructor(read: Read | undefined) {
    super()
    this.read = read
  }

  /**
   * Kysely returns false because some migrations turn `foreign_keys` off. Without a transaction, a killed migration
   * would leave half a schema.
   */
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

class FileDialect extends SqliteDialect {
  readonly #connection: SqliteConnection

  constructor(database: BetterSqlite3.Database, beside: Beside) {
    super({ database })
    this.#connection = new SqliteConnection(database, beside)
  }

  override createAdapter(): SqliteFileAdapter {
    return new SqliteFileAdapter(this.#connection.read)
  }

  override createQueryCompiler(): SqliteCompiler {
    return new SqliteCompiler()
  }

  override createDriver(): Driver {
    return this.#connection
  }
}

/**
 * Columns with few values that the conditions of partial indexes use. If a statement compares such a column with a
 * parameter, SQLite reads the value to choose an index. It then prepares the statement again for each run, which takes
 * longer than most of our statements run. With the value in the text, it is prepared once.
 */
const chosenBy: ReadonlySet<string> = columnsOf(Object.values(tables))

function columnsOf(declared: readonly Table[]): Set<string> {
  const inConditions = declared.flatMap(({ columns, indexes }) =>
    Object.entries(columns).filter(([name]) =>
      indexes.some(({ where }) => where !== undefined && new RegExp(`\\b${name}\\b`).test(where)),
    ),
  )
  const isOfFew = (name: string): boolean =>
    inConditions.every(([other, { sql }]) => other !== name || sql.isOneOf)
  return new Set(inConditions.map(([name]) => name).filter(isOfFew))
}

/** Whether a value can occur in such a column. Other values stay parameters. */
const isWord = (value: unknown): boolean =>
  Number.isSafeInteger(value) || (typeof value === 'string' && /^[a-z_]{1,40}$/.test(value))

class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const { leftOperand, rightOperand } = node
    super.visitBinaryOperation(
      isChosenBy(leftOperand) ? { ...node, rightOperand: spelledOut(rightOperand) } : node,
    )
  }
}

function isChosenBy(node: OperationNode): boolean {
  if (!ReferenceNode.is(node) || !ColumnNode.is(node.column)) return false
  return chosenBy.has(node.column.column.name)
}

function spelledOut(node: OperationNode): OperationNode {
  if (ValueNode.is(node)) return isWord(node.value) ? ValueNode.createImmediate(node.value) : node
  if (PrimitiveValueListNode.is(node))
    return node.values.every(isWord)
      ? ValueListNode.create(node.values.map((value) => ValueNode.createImmediate(value)))
      : node
  return node
}
