import type BetterSqlite3 from 'better-sqlite3'
import { CompiledQuery, type Driver } from 'kysely'
import { openDatabase, type DatabaseOptions } from '../../cloud/platform/store/database.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'
import { administrate, databaseAt } from '../support/postgres.ts'
import { fillBooks, freshBooks } from './cloud-books.ts'

/** The server of the cloud's database: SQLite in memory, or a database on a PostgreSQL server. */
export interface DatabaseServer {
  /**
   * The service's own driver on the present database. Several lives share it, so it is not initialised per
   * life.
   */
  readonly driver: Driver
  /** Resolves when connections are accepted; none is accepted during a copy. */
  ready(): Promise<void>
  /** Options with which the service opens the database. */
  readonly options: DatabaseOptions
  readonly hasCopy: boolean
  /** Whether a copy needs a moment without connections. */
  readonly copiesAlone: boolean
  /** Stores a copy of all committed data. */
  copy(): Promise<void>
  /** Restores the copy. */
  putBack(): Promise<void>
  close(): Promise<void>
}

async function driverOf(options: DatabaseOptions): Promise<Driver> {
  let driver: Driver | undefined
  openDatabase({
    ...options,
    through(dialect) {
      driver = dialect.createDriver()
      return dialect
    },
  })
  await driver!.init()
  return driver!
}

/** The scheduler controls time, so no time-out of the server may fire. */
const patient = { connections: 10, waitMs: 600_000, lockMs: 600_000, statementMs: 600_000 }
const pools = { reads: patient, writes: patient, gateway: patient, background: patient }

const inMemory = (sqlite: BetterSqlite3.Database): DatabaseOptions => ({ url: 'sqlite::memory:', sqlite })

/** SQLite has one connection. The processes take turns on it, as in the lock of Kysely's own driver. */
export class MemoryServer implements DatabaseServer {
  readonly copiesAlone = false
  #sqlite: BetterSqlite3.Database
  #copy: Buffer | undefined
  driver: Driver

  static async create(hubs: number): Promise<MemoryServer> {
    const sqlite = new Sqlite(await freshBooks(hubs))
    return new MemoryServer(sqlite, await driverOf(inMemory(sqlite)))
  }

  private constructor(sqlite: BetterSqlite3.Database, driver: Driver) {
    this.#sqlite = sqlite
    this.driver = driver
  }

  get options(): DatabaseOptions {
    return inMemory(this.#sqlite)
  }

  get hasCopy(): boolean {
    return this.#copy !== undefined
  }

  ready(): Promise<void> {
    return Promise.resolve()
  }

  async copy(): Promise<void> {
    const connection = await this.driver.acquireConnection()
    // A read outside of a transaction reads committed data.
    await connection.executeQuery(CompiledQuery.raw('select 1'))
    this.#copy = this.#sqlite.serialize()
    await this.driver.releaseConnection(connection)
  }

  async putBack(): Promise<void> {
    this.#sqlite = new Sqlite(this.#copy)
    this.driver = await driverOf(this.options)
  }

  close(): Promise<void> {
    this.#sqlite.close()
    return Promise.resolve()
  }
}

let databases = 0

/**
 * A separate database on the server at `url`. It is copied as a template, which must have no connection
 * meanwhile.
 */
export class PostgresServer implements DatabaseServer {
  static #template: Promise<string> | undefined
  readonly #url: string
  readonly #name: string
  #ready = Promise.resolve()
  readonly copiesAlone = true
  hasCopy = false
  driver: Driver

  static async create(url: string): Promise<PostgresServer> {
    PostgresServer.#template ??= makeTemplate(url)
    const name = `larder_swarm_${process.pid}_${++databases}`
    await administrate(url, `create database ${name} template ${await PostgresServer.#template}`)
    return new PostgresServer(url, name, await driverOf({ url: databaseAt(url, name), pools }))
  }

  private constructor(url: string, name: string, driver: Driver) {
    this.#url = url
    this.#name = name
    this.driver = driver
  }

  get options(): DatabaseOptions {
    return { url: databaseAt(this.#url, this.#name), pools }
  }

  async copy(): Promise<void> {
    await this.#alone(`drop database if exists ${this.#name}_copy`, [this.#name, `${this.#name}_copy`])
    this.hasCopy = true
  }

  putBack(): Promise<void> {
    return this.#alone(`drop database ${this.#name} with (force)`, [`${this.#name}_copy`, this.#name])
  }

  ready(): Promise<void> {
    return this.#ready
  }

  /** Creates one database from another while the other has no connection. */
  #alone(drop: string, [from, to]: readonly [string, string]): Promise<void> {
    const work = async (): Promise<void> => {
      await this.driver.destroy()
      await administrate(this.#url, drop)
      await administrate(this.#url, `create database ${to} template ${from}`)
      this.driver = await driverOf(this.options)
    }
    this.#ready = work()
    return this.#ready
  }

  async close(): Promise<void> {
    await this.driver.destroy()
    for (const name of [this.#name, `${this.#name}_copy`])
      await administrate(this.#url, `drop database if exists ${name} with (force)`)
  }
}

/** The template of this process's databases. The server deletes it with the last of them. */
async function makeTemplate(url: string): Promise<string> {
  const name = `larder_swarm_${process.pid}`
  await administrate(url, `create database ${name}`)
  const db = openDatabase({ url: databaseAt(url, name) })
  await fillBooks(db)
  await db.close()
  return name
}

/** Call it after the last seed. */
export async function dropTemplate(url: string): Promise<void> {
  await administrate(url, `drop database if exists larder_swarm_${process.pid} with (force)`)
}
