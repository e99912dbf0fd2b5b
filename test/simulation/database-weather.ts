import type { DatabaseConnection, Dialect, Driver, QueryResult, CompiledQuery } from 'kysely'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { Crash, Misfortune, type Life } from './scheduler.ts'

/** What ails the cloud's database; probabilities for each statement or commit. */
export interface DatabaseWeather {
  /** Nothing is answered until it is over, or until the caller has waited for `GIVEN_UP_MS`. */
  hangs: boolean
  /** No connection is accepted. */
  refuses: boolean
  /** The server ends a connection, in the midst of whatever it was doing. */
  endsConnections: number
  /** A commit is done, and its connection ends before the answer. */
  losesCommitAnswers: number
}

export const healthyDatabase: DatabaseWeather = {
  hangs: false,
  refuses: false,
  endsConnections: 0,
  losesCommitAnswers: 0,
}

/** As a caller's own limit of time for a statement ends it. */
const GIVEN_UP_MS = 15_000

/** What a client of PostgreSQL throws in such weather. */
export class DatabaseTrouble extends Misfortune {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

interface Parts {
  /** The driver that really speaks with the database. It is replaced where the database is. */
  readonly shared: () => Driver
  readonly ready: () => Promise<void>
  life: Life
  chance: Chance
  coverage: Coverage
  readonly weather: () => DatabaseWeather
  readonly after: (delayMs: number, run: () => void) => Cancel
  /** Resolves when the weather has changed. */
  readonly change: () => Promise<void>
  /** Lets virtual time wait for what a server does in its own. */
  readonly track: <T>(work: Promise<T>) => Promise<T>
}

/** Everything that a life holds open; when it dies, the server rolls back and closes. */
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
      // Its pool may have been closed meanwhile.
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

  /** Ends every connection, as the server does when it stops or the client dies. */
  async endAll(): Promise<void> {
    for (const connection of this.#held) await connection.end()
    this.#held.clear()
  }

  track<T>(work: Promise<T>): Promise<T> {
    return this.#parts.track(work)
  }

  /** What befalls a statement on its way. */
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
    // The server notices that its client is gone, and lets go of what was locked.
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

  /** The server rolls back and closes. */
  async end(): Promise<void> {
    if (!this.isOpen) return
    this.isOpen = false
    // It may be ended while a transaction is being begun.
    await this.#begun
    if (this.#inTransaction) await this.#session.track(this.#driver.rollbackTransaction(this.#inner))
    this.#inTransaction = false
    await this.#session.track(this.#driver.releaseConnection(this.#inner))
  }
}

/** The dialect of `inner`, with another driver. */
export const driven = (inner: Dialect, driver: Driver): Dialect => ({
  createAdapter: () => inner.createAdapter(),
  createQueryCompiler: () => inner.createQueryCompiler(),
  createIntrospector: (db) => inner.createIntrospector(db),
  createDriver: () => driver,
})
