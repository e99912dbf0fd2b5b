import type BetterSqlite3 from 'better-sqlite3'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'

const CACHED_STATEMENTS = 500

export type Read = (text: string, values: readonly unknown[]) => unknown[]

/** What there is beside the connection. */
export interface Beside {
  /** A connection that only reads, and sees what is committed. */
  reader: BetterSqlite3.Database | undefined
  /** How many transactions are made durable by one commit at most. */
  grouped: number
  /** Runs `commit` once all who are ready to join have joined; where there is none, nobody is waited for. */
  soon?: ((commit: () => void) => void) | undefined
}

/** Somebody's use of the connection, from when it is his to when it is the next one's. */
class Turn implements DatabaseConnection {
  /** Whether it has begun a transaction: one that opens a group, or one that has joined it; or has undone it. */
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

/** Transactions, and single statements that write, that have come to their end and are not durable yet. */
class Group {
  size = 0
  /** Others may join until `soon` comes; then it is due. */
  isAwaited = false
  isDue = false
  readonly durable: Promise<void>
  end!: (error?: unknown) => void

  constructor() {
    this.durable = new Promise((resolve, reject) => {
      this.end = (error) => (error === undefined ? resolve() : reject(error))
    })
    // Those who wait are told; a group may be lost before its first member waits.
    this.durable.catch(() => {})
  }
}

/**
 * The one connection that writes: whoever needs it has it in turn. It takes the write lock at the beginning of a transaction:
 * one that read first could not wait for it (SQLITE_BUSY at once).
 *
 * Making a commit durable takes longer than most transactions. Those that come meanwhile join it: each is a savepoint of one
 * transaction of SQLite, which undoes alone what fails alone, and one commit makes all of them durable. None has come to its
 * end before that: nobody is told of what a power cut could undo, and nothing outside of a transaction reads it. If the commit
 * fails, all of them have failed.
 */
export class SqliteConnection implements Driver {
  readonly #database: BetterSqlite3.Database
  readonly #beside: Beside
  readonly #statements: Statements
  /** Runs a query that only reads, beside what is being written: it sees what is durable, and waits for nobody. */
  readonly read: Read | undefined
  readonly #waiting: (() => void)[] = []
  #isTaken = false
  #group: Group | undefined
  /** The last error of a statement: why the whole transaction is undone, where it is. */
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
    if (part === 'none') return
    // On a full disk SQLite undoes the transaction by itself, with all that have joined it: the cause is what counts.
    if (!this.#database.inTransaction) this.#lose(this.#cause)
    else if (part === 'opened') this.#execute('rollback')
    else {
      this.#execute('rollback to savepoint joined')
      this.#execute('release savepoint joined')
    }
  }

  /** What the turn has written is in the group; resolves once it is durable. */
  #join(turn: Turn): Promise<void> {
    const group = (this.#group ??= new Group())
    group.size += 1
    turn.part = 'none'
    this.#end(turn)
    return group.durable
  }

  /** The connection is the next one's. Where nobody else is to join what is in the group, that is committed. */
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
          // Somebody may be in the midst of a transaction: then it is committed at the end of that.
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
        // Nobody's turn depends on it: it is undone before the next one writes.
      }
    }
  }

  /** Leaves open no transaction that nobody is in. */
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
    // What goes on beside what has failed would be committed by itself.
    if (turn.part === 'undone') throw new Error('the transaction is already undone')
    if (turn.part !== 'none') {
      if (!this.#database.inTransaction) throw this.#cause
      return this.#attempt(this.#statements.of(sql), parameters)
    }
    if (this.read && query.query.kind === 'SelectQueryNode') return { rows: this.read(sql, parameters) }
    if (!isWrite(query) || !(this.#group || this.#beside.soon)) {
      // It is alone, or may be anything, and is committed by itself.
      this.#commit()
      this.#undo()
      return this.#attempt(this.#statements.of(sql), parameters)
    }
    await this.beginTransaction(turn)
    try {
      const result = this.#attempt(this.#statements.of(sql), parameters)
      await this.commitTransaction(turn)
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

/** Prepared statements of one connection: the ones last used stay prepared. */
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
