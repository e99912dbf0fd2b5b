import type BetterSqlite3 from 'better-sqlite3'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'

const CACHED_STATEMENTS = 500

export type Read = (text: string, values: readonly unknown[]) => unknown[]

/** Options in addition to the connection. */
export interface Beside {
  /** A read-only connection that sees only committed data. */
  reader: BetterSqlite3.Database | undefined
  /** Maximum number of transactions per commit. */
  grouped: number
  /** Runs `commit` after all ready transactions have joined. Absent: the commit does not wait. */
  soon?: ((commit: () => void) => void) | undefined
}

/** One user's exclusive use of the connection, from acquiring to releasing it. */
class Turn implements DatabaseConnection {
  /** The turn's transaction: it opened a group, joined one, or was undone. */
  part: 'none' | 'opened' | 'joined' | 'undone' = 'none'
  isOver = false
  readonly #run: (turn: Turn, query: CompiledQuery) => Promise<QueryResult<unknown>>

  constructor(run: (turn: Turn, query: CompiledQuery) => Promise<QueryResult<unknown>>) {
    this.#run = run
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#run(this, query) as Promise<QueryResult<R>>
  }

  // eslint-disable-next-line require-yield
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('nothing is read as a stream')
  }
}

/** Finished transactions and single writes that are not durable yet. */
class Group {
  size = 0
  /** Whether `soon` was called. Others may join until it runs; then the commit is due. */
  isAwaited = false
  isDue = false
  readonly durable: Promise<void>
  end!: (error?: unknown) => void

  constructor() {
    this.durable = new Promise((resolve, reject) => {
      this.end = (error) => (error === undefined ? resolve() : reject(error))
    })
    // Members that wait get the error. A group may be lost before its first member waits.
    this.durable.catch(() => {})
  }
}

/**
 * The single writing connection. Its users take turns. A transaction takes the write lock at its beginning: after a
 * read it could not wait for the lock (SQLITE_BUSY at once).
 *
 * Making a commit durable takes longer than most transactions. Waiting transactions therefore join it: each is a
 * savepoint of one SQLite transaction, and one commit makes all of them durable. A failing one is undone separately. If
 * the commit fails, all of them fail.
 *
 * None resolves before the commit. No caller therefore sees a change that a power cut could undo, and no query outside
 * of a transaction reads it.
 */
export class SqliteConnection implements Driver {
  readonly #database: BetterSqlite3.Database
  readonly #beside: Beside
  readonly #statements: Statements
  /** Runs a read-only query concurrently with writes. It sees durable data and waits for no writer. */
  readonly read: Read | undefined
  readonly #waiting: (() => void)[] = []
  #isTaken = false
  #group: Group | undefined
  /** The last error of a statement: if the whole transaction is undone, this is the reason. */
  #cause: unknown

  constructor(database: BetterSqlite3.Database, beside: Beside) {
    this.#database = database
    this.#beside = beside
    this.#statements = new Statements(database)
    const reads = beside.reader && new Statements(beside.reader)
    this.read = reads && ((text, values) => reads.of(text).all(values))
  }

  async init(): Promise<void> {}

  destroy(): Promise<void> {
    if (this.#isTaken) this.#lose(new Error('the database was closed in the midst of a transaction'))
    else this.#commit()
    this.#beside.reader?.close()
    this.#database.close()
    return Promise.resolve()
  }

  async acquireConnection(): Promise<Turn> {
    if (this.#isTaken) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#isTaken = true
    return new Turn((turn, query) => this.#run(turn, query))
  }

  releaseConnection(turn: Turn): Promise<void> {
    if (!turn.isOver) this.#end(turn)
    return Promise.resolve()
  }

  async beginTransaction(turn: Turn): Promise<void> {
    if (this.#group) this.#execute('savepoint joined')
    else {
      this.#undo()
      this.#execute('begin immediate')
    }
    turn.part = this.#group ? 'joined' : 'opened'
  }

  async commitTransaction(turn: Turn): Promise<void> {
    if (turn.part === 'joined') this.#execute('release savepoint joined')
    await this.#join(turn)
  }

  async rollbackTransaction(turn: Turn): Promise<void> {
    const { part } = turn
    turn.part = 'undone'
    // On a full disk SQLite itself undoes the transaction with all joined ones. Report the cause.
    if (!this.#database.inTransaction) this.#lose(this.#cause)
    else if (part === 'opened') this.#execute('rollback')
    else if (part === 'joined') {
      this.#execute('rollback to savepoint joined')
      this.#execute('release savepoint joined')
    }
  }

  /** Adds the turn's writes to the group. Resolves when they are durable. */
  #join(turn: Turn): Promise<void> {
    const group = (this.#group ??= new Group())
    group.size += 1
    turn.part = 'none'
    this.#end(turn)
    return group.durable
  }

  /** Releases the connection. Commits the group if no other transaction is going to join. */
  #end(turn: Turn): void {
    turn.isOver = true
    const { grouped, soon } = this.#beside
    const group = this.#group
    if (group) {
      const isLonely = soon === undefined && this.#waiting.length === 0
      if (isLonely || group.isDue || group.size >= grouped) this.#commit()
      else if (soon && !group.isAwaited) {
        group.isAwaited = true
        soon(() => {
          group.isDue = true
          // If a transaction is in progress, the commit follows at its end.
          if (this.#group === group && !this.#isTaken) this.#commit()
        })
      }
    }
    this.#next()
  }

  #next(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#isTaken = false
  }

  #commit(): void {
    const group = this.#group
    if (!group) return
    try {
      this.#execute('commit')
      this.#group = undefined
      group.end()
    } catch (error) {
      this.#lose(error)
      try {
        this.#undo()
      } catch {
        // No turn depends on the group. It is undone before the next write.
      }
    }
  }

  /** Rolls back a transaction that no turn uses any more. */
  #undo(): void {
    if (this.#database.inTransaction) this.#execute('rollback')
  }

  #lose(cause: unknown): void {
    const group = this.#group
    this.#group = undefined
    group?.end(cause ?? new Error('the transaction was undone'))
  }

  async #run(turn: Turn, query: CompiledQuery): Promise<QueryResult<unknown>> {
    const { sql, parameters } = query
    if (turn.isOver) throw new Error('the connection is already the next one’s')
    // A statement after the failure would be committed separately.
    if (turn.part === 'undone') throw new Error('the transaction is already undone')
    if (turn.part !== 'none') {
      if (!this.#database.inTransaction) throw this.#cause
      return this.#attempt(this.#statements.of(sql), parameters)
    }
    if (this.read && query.query.kind === 'SelectQueryNode') return { rows: this.read(sql, parameters) }
    if (!isWrite(query) || !(this.#group || this.#beside.soon)) {
      // A statement of unknown kind, or a write without a group. It is committed separately.
      this.#commit()
      this.#undo()
      return this.#attempt(this.#statements.of(sql), parameters)
    }
    // A single write joins a group without a savepoint: SQLite itself undoes a failed statement.
    if (!this.#group) await this.beginTransaction(turn)
    try {
      const result = this.#attempt(this.#statements.of(sql), parameters)
      await this.#join(turn)
      return result
    } catch (error) {
      await this.rollbackTransaction(turn)
      throw error
    }
  }

  #attempt(statement: BetterSqlite3.Statement, parameters: readonly unknown[]): QueryResult<unknown> {
    try {
      if (statement.reader) return { rows: statement.all(parameters) }
      const { changes, lastInsertRowid } = statement.run(parameters)
      return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] }
    } catch (error) {
      this.#cause = error
      throw error
    }
  }

  #execute(text: string): void {
    this.#statements.of(text).run()
  }
}

const isWrite = ({ query: { kind } }: CompiledQuery): boolean =>
  kind === 'InsertQueryNode' || kind === 'UpdateQueryNode' || kind === 'DeleteQueryNode'

/** Prepared statements of one connection, cached by last use. */
class Statements {
  readonly #database: BetterSqlite3.Database
  readonly #prepared = new Map<string, BetterSqlite3.Statement>()

  constructor(database: BetterSqlite3.Database) {
    this.#database = database
  }

  of(text: string): BetterSqlite3.Statement {
    const known = this.#prepared.get(text)
    const statement = known ?? this.#database.prepare(text)
    if (known) this.#prepared.delete(text)
    this.#prepared.set(text, statement)
    if (this.#prepared.size > CACHED_STATEMENTS) this.#prepared.delete(this.#prepared.keys().next().value!)
    return statement
  }
}
