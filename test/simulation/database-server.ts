import type BetterSqlite3 from 'better-sqlite3'
import { Kysely, PostgresDialect, sql, type Driver } from 'kysely'
import { Pool } from 'pg'
import { openDatabase, type DatabaseOptions } from '../../cloud/platform/store/database.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'
import { fillBooks, freshBooks } from './cloud-books.ts'

/** What holds the cloud's books: SQLite in memory, or a database of a PostgreSQL server. */
export interface DatabaseServer {
  /** The service's own driver, on what the books are now. It is used by many: its beginning is not theirs. */
  readonly driver: Driver
  /** With which the service opens them. */
  readonly options: DatabaseOptions
  readonly hasCopy: boolean
  /** Keeps a copy of what is committed. */
  copy(): Promise<void>
  /** The books are what the copy was. */
  putBack(): Promise<void>
  close(): Promise<void>
}

function driverOf(options: DatabaseOptions): Driver {
  let driver: Driver | undefined
  openDatabase({
    ...options,
    through(dialect) {
      driver = dialect.createDriver()
      return dialect
    },
  })
  void driver!.init()
  return driver!
}

/** SQLite has one connection: the processes take turns on it, as Kysely's own lock of that driver has it. */
export class MemoryServer implements DatabaseServer {
  #sqlite: BetterSqlite3.Database
  #copy: Buffer | undefined
  driver: Driver

  static async create(): Promise<MemoryServer> {
    return new MemoryServer(await freshBooks())
  }

  private constructor(contents: Buffer) {
    this.#sqlite = new Sqlite(contents)
    this.driver = driverOf(this.options)
  }

  get options(): DatabaseOptions {
    return { url: 'sqlite::memory:', sqlite: this.#sqlite }
  }

  get hasCopy(): boolean {
    return this.#copy !== undefined
  }

  async copy(): Promise<void> {
    const connection = await this.driver.acquireConnection()
    this.#copy = this.#sqlite.serialize()
    await this.driver.releaseConnection(connection)
  }

  putBack(): Promise<void> {
    this.#sqlite = new Sqlite(this.#copy)
    this.driver = driverOf(this.options)
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#sqlite.close()
    return Promise.resolve()
  }
}

let databases = 0

/** A database of its own on the server at `url`, copied as a template: nobody may be connected meanwhile. */
export class PostgresServer implements DatabaseServer {
  static #template: Promise<string> | undefined
  readonly #url: string
  readonly #name = `larder_swarm_${process.pid}_${++databases}`
  hasCopy = false
  driver: Driver

  static async create(url: string): Promise<PostgresServer> {
    PostgresServer.#template ??= makeTemplate(url)
    const server = new PostgresServer(url)
    await administrate(url, `create database ${server.#name} template ${await PostgresServer.#template}`)
    return server
  }

  private constructor(url: string) {
    this.#url = url
    this.driver = driverOf(this.options)
  }

  get options(): DatabaseOptions {
    return { url: addressOf(this.#url, this.#name) }
  }

  async copy(): Promise<void> {
    await this.driver.destroy()
    await administrate(this.#url, `drop database if exists ${this.#name}_copy`)
    await administrate(this.#url, `create database ${this.#name}_copy template ${this.#name}`)
    this.driver = driverOf(this.options)
    this.hasCopy = true
  }

  async putBack(): Promise<void> {
    await this.driver.destroy()
    await administrate(this.#url, `drop database ${this.#name} with (force)`)
    await administrate(this.#url, `create database ${this.#name} template ${this.#name}_copy`)
    this.driver = driverOf(this.options)
  }

  async close(): Promise<void> {
    await this.driver.destroy()
    for (const name of [this.#name, `${this.#name}_copy`])
      await administrate(this.#url, `drop database if exists ${name} with (force)`)
  }
}

/** What the databases of this process are made from; it goes with the last of them that the server has. */
async function makeTemplate(url: string): Promise<string> {
  const name = `larder_swarm_${process.pid}`
  await administrate(url, `create database ${name}`)
  const db = openDatabase({ url: addressOf(url, name) })
  await fillBooks(db)
  await db.close()
  return name
}

/** To be called when no more seeds are run. */
export async function dropTemplate(url: string): Promise<void> {
  await administrate(url, `drop database if exists larder_swarm_${process.pid} with (force)`)
}

function addressOf(url: string, name: string): string {
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

async function administrate(url: string, statement: string): Promise<void> {
  const admin = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 1 }) }),
  })
  try {
    await sql.raw(statement).execute(admin)
  } finally {
    await admin.destroy()
  }
}
