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
 * After so many pages what is in the log is written to the database: by a commit, which waits for it. A payment changes some
 * sixty pages, many of them the same as the one before it: the longer the log, the less often these are written.
 */
const CHECKPOINT_PAGES = 4000
/** How many transactions are made durable by one commit at most: the first of them waits for the last. */
const GROUPED_COMMITS = 16

export interface SqliteOptions {
  /** An open database instead of the one that the address names. */
  sqlite?: BetterSqlite3.Database | undefined
  /** How many transactions one commit makes durable at most. */
  grouped?: number
  /** After so many pages of its log a commit writes them to the database. */
  checkpointPages?: number
  /** Whether this process serves many at once: then a commit waits, for one round of the event loop, for those who are ready. */
  isBusy?: boolean
}

/** SQLite: one connection, one transaction at a time, everything durable when it is committed. */
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
  // An instance that died in mid-transaction (a simulation hands its database on) leaves it to be undone.
  if (database.inTransaction) database.exec('rollback')
  database.pragma('busy_timeout = 5000')
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma(`wal_autocheckpoint = ${checkpointPages}`)
  database.pragma('foreign_keys = ON')
  const reader = prepared || database.memory ? undefined : new Sqlite(database.name, { readonly: true })
  return new FileDialect(database, { reader, grouped, soon: isBusy ? setImmediate : undefined })
}

/** Whoever comes first makes the folder: the service, or a command line before its first start. */
function openFile(path: string): BetterSqlite3.Database {
  if (path !== ':memory:') {
    makeFolder(files, dirname(path))
    if (files.existsSync(path)) refuseOtherSchema(path)
  }
  return new Sqlite(path)
}

/**
 * Throws `SchemaRefused` if another build made the file. `migrate` compares too, on a connection that may write: when it
 * closes, it moves the log into the file. A file that this build refuses must stay as it is.
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
 * Columns of a few values by which indexes choose their rows. Where a statement compares one of them with a parameter, SQLite
 * looks at the parameter's value to choose an index, and so prepares the statement anew for each run: longer than most of ours
 * take to run. Compared with a value that stands in the text, it is prepared once.
 */
const chosenBy: ReadonlySet<string> = columnsOf(Object.values(tables))

function columnsOf(declared: readonly Table[]): Set<string> {
  const names = declared.flatMap(({ columns, indexes }) =>
    Object.keys(columns).filter((name) =>
      indexes.some(({ where }) => where !== undefined && new RegExp(`\\b${name}\\b`).test(where)),
    ),
  )
  const isOfFew = (name: string): boolean =>
    declared.every(({ columns }) => columns[name] === undefined || columns[name].sql.isOneOf)
  return new Set(names.filter(isOfFew))
}

/** What such a column holds; anything else stays a parameter. */
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
