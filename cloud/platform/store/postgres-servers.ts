import { readFileSync } from 'node:fs'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import type { ClientConfig } from 'pg'
import { fileProblem } from '../../../protocol/model/system-error.ts'
import { RUNNING_LOCK } from './advisory-locks.ts'
import { DatabaseUnavailable } from './outage.ts'
import {
  isSocket,
  postgresAddress,
  serverName,
  type PostgresAddress,
  type PostgresServer,
} from '../settings/postgres-url.ts'

/** A way to reach a server: in plain text or with TLS. */
export interface Way {
  server: PostgresServer
  isEncrypted: boolean
}

/**
 * The servers of a `DATABASE_URL`, shared by all pools of the process. New connections go to the server that accepted
 * the last one. If it fails or accepts no writes, the next server of the list is tried. `sslmode` allow and prefer have
 * two ways to each server.
 */
export class PostgresServers {
  readonly #address: PostgresAddress
  readonly #ways: readonly Way[]
  #current = 0
  /**
   * Whether there is a connection pooler. The server then reports a process id other than the one at the connection's
   * start.
   */
  isPooled = false

  /** Whether the sessions hold `RUNNING_LOCK`. */
  readonly isService: boolean

  /** Throws a `UsageError` if the address is malformed. */
  constructor(url: string, isService = false) {
    this.isService = isService
    this.#address = postgresAddress(url)
    this.#ways = this.#address.servers.flatMap((server) => waysTo(server, this.#address))
  }

  /** The number of ways that a connection tries before it fails. */
  get count(): number {
    return this.#ways.length
  }

  get current(): Way {
    return this.#ways[this.#current]!
  }

  /** The next connection tries another way, unless another connection has already switched. */
  failed(way: Way): void {
    if (way === this.current) this.#current = (this.#current + 1) % this.#ways.length
  }

  /** If there are several servers, each reason names its own. */
  named(error: DatabaseUnavailable, { server }: Way): DatabaseUnavailable {
    const name = serverName(server)
    if (this.#address.servers.length === 1 || error.message.includes(name)) return error
    return new DatabaseUnavailable(`${name}: ${error.message}`, error)
  }

  /** The `pg` options for a server. Reads certificate files each time, so a renewed file needs no restart. */
  configOf({ server, isEncrypted }: Way): ClientConfig {
    const { user, password, database, applicationName, options, isDirectTls } = this.#address
    return {
      host: server.host,
      port: server.port,
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { database }),
      ...(options !== undefined && { options }),
      application_name: applicationName,
      ssl: isEncrypted && tlsOf(server, this.#address),
      ...(isEncrypted && isDirectTls && { sslnegotiation: 'direct' as const }),
    }
  }
}

function waysTo(server: PostgresServer, { sslMode }: PostgresAddress): Way[] {
  const [clear, encrypted] = [false, true].map((isEncrypted): Way => ({ server, isEncrypted }))
  // libpq ignores `sslmode` on unix sockets, too.
  if (isSocket(server) || sslMode === 'disable') return [clear!]
  if (sslMode === 'allow') return [clear!, encrypted!]
  return sslMode === 'prefer' ? [encrypted!, clear!] : [encrypted!]
}

/**
 * The TLS options of a mode. As in libpq, with a root certificate every mode verifies the chain, and only `verify-full`
 * compares the host. Without one, `verify-full` trusts Node's authorities.
 */
function tlsOf({ host }: PostgresServer, address: PostgresAddress): ConnectionOptions {
  const { sslMode, rootCertificate: root, certificate, key, keyPassphrase } = address
  return {
    rejectUnauthorized: root !== undefined || sslMode === 'verify-full',
    ...(root !== undefined && root !== 'system' && { ca: fileOf('sslrootcert', root) }),
    ...(certificate !== undefined && { cert: fileOf('sslcert', certificate) }),
    ...(key !== undefined && { key: fileOf('sslkey', key) }),
    ...(keyPassphrase !== undefined && { passphrase: keyPassphrase }),
    checkServerIdentity: (_name, peer) =>
      sslMode === 'verify-full' ? checkServerIdentity(host, peer) : undefined,
  }
}

function fileOf(parameter: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new DatabaseUnavailable(`its ${parameter} ${path} cannot be read: ${fileProblem(error)}`, error)
  }
}

interface SessionLimits {
  lockMs: number
  statementMs: number
  /** Maximum idle time of a transaction in milliseconds. 0: no limit. */
  idleMs: number
  isService: boolean
}

/**
 * Statements that set up a session and report its state. The product relies on no default of the server, the database
 * or the role. They are statements because PgBouncer refuses most startup parameters. Zero is no limit.
 */
export const sessionQuery = ({ lockMs, statementMs, idleMs, isService }: SessionLimits): string =>
  [
    `set client_encoding = 'UTF8'`,
    'set standard_conforming_strings = on',
    `set datestyle = 'ISO, MDY'`,
    `set timezone = 'UTC'`,
    `set bytea_output = 'hex'`,
    'set extra_float_digits = 1',
    `set default_transaction_isolation = 'read committed'`,
    `set lock_timeout = ${lockMs}`,
    `set statement_timeout = ${statementMs}`,
    `set idle_in_transaction_session_timeout = ${idleMs}`,
    ...(isService ? [`select pg_advisory_lock_shared(${RUNNING_LOCK})`] : []),
    // An answered call must survive a crash of the server.
    `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`,
    `select current_setting('transaction_read_only') = 'on' as "isReadOnly",
       current_setting('server_encoding') as encoding,
       current_database() as database, pg_backend_pid() as pid,
       current_schema() as schema, current_setting('search_path') as "searchPath"`,
  ].join(';\n')

export interface SessionFacts {
  isReadOnly: boolean
  encoding: string
  database: string
  pid: number
  /** Null if no schema of the search path exists. */
  schema: string | null
  searchPath: string
}

/** Why the service cannot use a session; undefined if it can. */
export function refusedSession(facts: SessionFacts, server: PostgresServer): Error | undefined {
  const { isReadOnly, encoding, database, schema, searchPath } = facts
  if (encoding !== 'UTF8')
    return new DatabaseUnavailable(
      `the database ${JSON.stringify(database)} has the encoding ${encoding}, and the service needs UTF8: create the database with encoding 'UTF8' and template template0`,
    )
  if (schema === null)
    return new DatabaseUnavailable(
      `no schema of the search_path ${JSON.stringify(searchPath)} exists in the database ${JSON.stringify(database)}: create the schema, or change the search_path`,
    )
  if (isReadOnly)
    return new DatabaseUnavailable(
      `${serverName(server)} accepts no writes: it is a standby, or default_transaction_read_only is on`,
      undefined,
      READ_ONLY,
    )
  return undefined
}

/** PostgreSQL's code for a write that a read-only transaction attempts. */
export const READ_ONLY = '25006'
