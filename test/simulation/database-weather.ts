import type { DatabaseConnection, Dialect, Driver, QueryResult, CompiledQuery } from 'kysely'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { Crash, Misfortune, type Life } from './scheduler.ts'

/** Faults of the cloud's database, as probabilities for each statement or commit. */
export interface DatabaseWeather {
  /** No statement is answered until the fault ends, or until the caller has waited for `GIVEN_UP_MS`. */
  hangs: boolean
  /** No connection is accepted. */
  refuses: boolean
  /** The server closes a connection during a statement. */
  endsConnections: number
  /** A commit succeeds, and its connection closes before the answer. */
  losesCommitAnswers: number
}

export const healthyDatabase: DatabaseWeather = {
  hangs: false,
  refuses: false,
  endsConnections: 0,
  losesCommitAnswers: 0,
}

/** A caller's own time limit ends a statement after this time. */
const GIVEN_UP_MS = 15_000

/** The error that a client of PostgreSQL throws for such a fault. */
export class DatabaseTrouble extends Misfortune {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

interface Parts {
  /** The driver of the real database. It is replaced together with the database. */
  readonly shared: () => Driver
  readonly ready: () => Promise<void>
  life: Life
  chance: Chance
  coverage: Coverage
  readonly weather: () => DatabaseWeather
  readonly after: (delayMs: number, run: () => void) => Cancel
  /** Resolves when the faults have changed. */
  readonly change: () => Promise<void>
  /** Keeps virtual time still during real work of a server. */
  readonly track: <T>(work: Promise<T>) => Promise<T>
}

/** All connections of one life. When the life ends, the server rolls back and closes them. */
export class Session implements Driver {
  readonly #parts: Parts
  readonly #held = new Set<FrailConnection>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async init(): Promise<void> {}
  async destroy(): Promise<void> {}

  async acquireConnection(): Promise<FrailConnection> {
    const { shared, life, coverage } = this.#parts
    await this.passed()
    if (this.#parts.weather().refuses) {
      coverage.hit('fault database refused a connection')
      throw new DatabaseTrouble('ECONNREFUSED', 'the simulated database accepts no connection')
    }
    await this.track(this.#parts.ready())
    const driver = shared()
    const inner = await this.track(driver.acquireConnection()).catch(async (error: unknown) => {
      // The pool may have closed since then.
      await this.track(this.#parts.ready())
      throw driver === shared() ? error : new DatabaseTrouble('57P01', 'the simulated database was replaced')
    })
    const connection = new FrailConnection(this, driver, inner)
    this.#held.add(connection)
    if (!life.alive || driver !== shared()) {
      await connection.end()
      if (!life.alive) throw new Crash(life, 'database')
      throw new DatabaseTrouble('57P01', 'the simulated database was replaced')
    }
    return connection
  }

  async beginTransaction(connection: FrailConnection, settings: object): Promise<void> {
    await this.statement(connection)
    await connection.begin(settings)
  }

  async commitTransaction(connection: FrailConnection): Promise<void> {
    await this.statement(connection)
    await connection.commit()
    const { chance, coverage } = this.#parts
    if (!chance.happens(this.#parts.weather().losesCommitAnswers)) return
    coverage.hit('fault database lost the answer to a commit')
    await connection.end()
    throw new DatabaseTrouble('57P01', 'the simulated connection ended after the commit')
  }

  async rollbackTransaction(connection: FrailConnection): Promise<void> {
    if (connection.isOpen) await connection.rollback()
  }

  async releaseConnection(connection: FrailConnection): Promise<void> {
    this.#held.delete(connection)
    await connection.release()
  }

  /** Closes every connection, as the server does when it stops or the client dies. */
  async endAll(): Promise<void> {
    for (const connection of this.#held) await connection.end()
    this.#held.clear()
  }

  track<T>(work: Promise<T>): Promise<T> {
    return this.#parts.track(work)
  }

  /** Applies the faults to a statement. */
  async statement(connection: FrailConnection): Promise<void> {
    await this.passed(connection)
    const { chance, coverage } = this.#parts
    if (chance.happens(this.#parts.weather().endsConnections)) {
      coverage.hit('fault database ended a connection')
      await connection.end()
    }
    if (!connection.isOpen) throw new DatabaseTrouble('57P01', 'the simulated connection was ended')
  }

  async passed(connection?: FrailConnection): Promise<void> {
    const { life, coverage, weather } = this.#parts
    if (!life.alive) throw new Crash(life, 'database')
    if (!weather().hangs) return
    coverage.hit('fault database hung')
    // The server notices the lost client, and releases its locks.
    await connection?.end()
    const limit = new Promise<'given up'>((resolve) =>
      this.#parts.after(GIVEN_UP_MS, () => resolve('given up')),
    )
    const answers = async (): Promise<'answers'> => {
      while (weather().hangs) await this.#parts.change()
      return 'answers'
    }
    if ((await Promise.race([limit, answers()])) === 'given up')
      throw new DatabaseTrouble('ETIMEDOUT', 'the simulated database did not answer')
  }
}

/** One connection of one life. */
export class FrailConnection implements DatabaseConnection {
  readonly #session: Session
  readonly #driver: Driver
  readonly #inner: DatabaseConnection
  #begun: Promise<void> | undefined
  #inTransaction = false
  isOpen = true

  constructor(session: Session, driver: Driver, inner: DatabaseConnection) {
    this.#session = session
    this.#driver = driver
    this.#inner = inner
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    await this.#session.statement(this)
    return this.#session.track(this.#inner.executeQuery<R>(query))
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.#inner.streamQuery<R>(query, chunkSize)
  }

  async begin(settings: object): Promise<void> {
    const begin = async (): Promise<void> => {
      await this.#driver.beginTransaction(this.#inner, settings)
      this.#inTransaction = true
    }
    this.#begun = begin()
    await this.#session.track(this.#begun)
  }

  async commit(): Promise<void> {
    await this.#session.track(this.#driver.commitTransaction(this.#inner))
    this.#inTransaction = false
  }

  async rollback(): Promise<void> {
    this.#inTransaction = false
    await this.#session.track(this.#driver.rollbackTransaction(this.#inner))
  }

  async release(): Promise<void> {
    if (!this.isOpen) return
    this.isOpen = false
    await this.#session.track(this.#driver.releaseConnection(this.#inner))
  }

  /** The server rolls back and closes the connection. */
  async end(): Promise<void> {
    if (!this.isOpen) return
    this.isOpen = false
    // The connection may close while a transaction is being opened.
    await this.#begun
    if (this.#inTransaction) await this.#session.track(this.#driver.rollbackTransaction(this.#inner))
    this.#inTransaction = false
    await this.#session.track(this.#driver.releaseConnection(this.#inner))
  }
}

/** The dialect `inner` with another driver. */
export const driven = (inner: Dialect, driver: Driver): Dialect => ({
  createAdapter: () => inner.createAdapter(),
  createQueryCompiler: () => inner.createQueryCompiler(),
  createIntrospector: (db) => inner.createIntrospector(db),
  createDriver: () => driver,
})
