import {
  PostgresDialect,
  PostgresDriver,
  type DatabaseConnection,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely'
import type { ClientConfig, CustomTypesConfig, Pool, PoolClient, PoolConfig } from 'pg'
import type { Log } from '../../../protocol/model/log.ts'
import type { PoolLimits } from '../settings/limits.ts'
import { DatabaseUnavailable, reasonOf } from './outage.ts'
import {
  READ_ONLY,
  refusedSession,
  sessionQuery,
  type PostgresServers,
  type SessionFacts,
  type Way,
} from './postgres-servers.ts'
import { Socket } from 'node:net'
import { joined, rowsOf, runsOf, type Part } from './joined-statements.ts'

/** The connections of one use to a server, and their state. */
interface PostgresConnections {
  dialect: PostgresDialect
  state: () => PoolState
}

export interface PoolState {
  /** Maximum number of connections. */
  size: number
  /** Connections in use. */
  busy: number
  idle: number
  /** Callers that wait for a connection. */
  waiting: number
  /** Callers that got no connection in time, since the start. */
  refused: number
}

/** The error of `pg` if no answer arrives. Whether the statement was executed is unknown. */
const SILENT = 'Query read timeout'
/** The error of the pool if all connections are in use. */
const NONE_FREE = 'timeout exceeded when trying to connect'
/** The error of the pool if a server does not answer. */
const NOT_MADE = 'Connection terminated due to connection timeout'
/** The error of `pg` if a server has no TLS. With `sslmode=prefer` the plain way is tried next. */
const NO_TLS = 'The server does not support SSL connections'
/**
 * The server cancels a statement at its limit. The client fails it this much later if the server does not answer at
 * all.
 */
const SILENCE_GRACE_MS = 1000
const KEEP_ALIVE_MS = 10_000

/**
 * PostgreSQL connections. Every wait has a limit: for a connection, a lock, a statement, or a silent server. The driver
 * is loaded at the first query, because a command line on SQLite does not need it. `lifetimeS`: lifetime of a
 * connection.
 */
export function openPostgres(
  servers: PostgresServers,
  log: Log,
  settings: PoolLimits,
  lifetimeS?: number,
): PostgresConnections {
  let pool: Pool | undefined
  let refused = 0
  async function open(): Promise<PostgresPool> {
    const opened = (pool = await openPool(servers, log, settings, lifetimeS))
    return {
      async connect() {
        const connected = await connectTo(opened, servers)
        if (!(connected instanceof Error)) return careful(connected)
        if (connected.message === NONE_FREE || connected.message === NOT_MADE) refused += 1
        throw connected
      },
      end: () => opened.end(),
    }
  }
  return {
    dialect: new PatientDialect({ pool: open }),
    state() {
      const { totalCount: total, idleCount: idle, waitingCount: waiting } = pool ?? NO_POOL
      return { size: settings.connections, busy: total - idle, idle, waiting, refused }
    },
  }
}

/** Takes a connection of the pool; tries each way to a server in turn. Otherwise throws the reason. */
async function connectTo(pool: Pool, servers: PostgresServers): Promise<PoolClient | Error> {
  const failures: DatabaseUnavailable[] = []
  for (let attempt = 0; attempt < servers.count; attempt += 1)
    try {
      return await pool.connect()
    } catch (error) {
      failures.push(unavailable(error))
      if (failures.at(-1)!.message === NONE_FREE) break
    }
  if (failures.length === 1) return failures[0]!
  const specific = failures.filter(({ message }) => !message.endsWith(NO_TLS))
  const reported = specific.length > 0 ? specific : failures
  return new DatabaseUnavailable(
    [...new Set(reported.map(({ message }) => message))].join('; '),
    reported.find(({ code }) => code === READ_ONLY) ?? reported.at(-1),
  )
}

const unavailable = (error: unknown): DatabaseUnavailable => {
  if (error instanceof DatabaseUnavailable) return error
  return new DatabaseUnavailable(error instanceof Error ? reasonOf(error) : String(error), error)
}

const NO_POOL = { totalCount: 0, idleCount: 0, waitingCount: 0 }

async function openPool(
  servers: PostgresServers,
  log: Log,
  settings: PoolLimits,
  lifetimeS: number | undefined,
): Promise<Pool> {
  const { default: pg } = await import('pg')
  const { INT8, NUMERIC } = pg.types.builtins
  // All our integers, including sums, are below 2^53. 64-bit integers are therefore read as numbers.
  const plainNumbers: CustomTypesConfig = {
    getTypeParser: (oid, format) =>
      oid === INT8 || oid === NUMERIC
        ? Number
        : (pg.types.getTypeParser(oid, format) as (value: string) => unknown),
  }
  /**
   * A connection to the current server. It counts as connected after its session is set up and checked. It may break at
   * any time: a restart, a failover, an administrator. The running query gets the error, or else the next query.
   */
  class Session extends pg.Client {
    hasEnded = false
    readonly #way: Way
    /** Why it cannot be configured. The pool expects errors only from `connect`. */
    readonly #problem: DatabaseUnavailable | undefined

    constructor(config: PoolConfig) {
      const way = servers.current
      const { config: its, problem } = configured(() => servers.configOf(way))
      super({ ...config, ...its })
      this.#way = way
      this.#problem = problem
      // Listens from the start: the server may end a session in the packet that accepts it. An error event without a
      // listener would end the process.
      this.on('error', (err) => {
        this.hasEnded = true
        log.warn({ err }, 'a connection to the database has ended')
      })
    }

    override connect(): Promise<Session>
    override connect(done: (error: Error | null, client?: Session) => void): void
    override connect(done?: (error: Error | null, client?: Session) => void): Promise<Session> | void {
      const connected = this.#open().catch((error: unknown) => {
        servers.failed(this.#way)
        throw servers.named(unavailable(error), this.#way)
      })
      if (!done) return connected
      connected.then((client) => done(null, client), done)
    }

    async #open(): Promise<Session> {
      if (this.#problem) throw this.#problem
      await super.connect()
      const idleMs = settings.statementMs === 0 ? 0 : 2 * settings.statementMs + KEEP_ALIVE_MS
      const results: unknown = await this.query(
        sessionQuery({ ...settings, idleMs, isService: servers.isService }),
      )
      const facts = (results as { rows: SessionFacts[] }[]).at(-1)!.rows[0]!
      const { processID } = this as unknown as { processID: number | null }
      servers.isPooled = facts.pid !== processID
      const refusal = refusedSession(facts, this.#way.server)
      if (!refusal) return this
      this.end().catch(() => {})
      throw refusal
    }
  }

  // Sends a transaction's concurrent statements together. The server runs them in order.
  const pool = new pg.Pool({
    Client: Session as unknown as NonNullable<PoolConfig['Client']>,
    types: plainNumbers,
    pipeline: true,
    stream: () => new GatheringSocket(),
    ...boundsOf(settings),
    ...(lifetimeS !== undefined && { maxLifetimeSeconds: lifetimeS }),
  })
  pool.on('error', () => {})
  return pool
}

function configured(work: () => ClientConfig): { config?: ClientConfig; problem?: DatabaseUnavailable } {
  try {
    return { config: work() }
  } catch (error) {
    return { problem: unavailable(error) }
  }
}

const boundsOf = ({ connections, waitMs, statementMs }: PoolLimits): PoolConfig => ({
  max: connections,
  connectionTimeoutMillis: waitMs,
  query_timeout: statementMs === 0 ? 0 : statementMs + SILENCE_GRACE_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
})

/** Names of frequent statements. The server parses each of them once per connection. */
const names = new Map<string, string>()

/** Prepares the statement on each connection that runs it. Use it only for a small number of texts. */
export function nameStatement(text: string): void {
  if (!names.has(text)) names.set(text, `s${names.size}`)
}

/** A read may be sent together with `begin`: outside of a transaction it would change nothing. */
const ONLY_READS = /^\s*select\b/i

/** Codes after which a connection is dropped: its server accepts no writes, or a pooler mixes up its statements. */
const USELESS = [READ_ONLY, '26000', '42P05']

/**
 * Drops a connection if an answer did not arrive, because the next statement would get that answer. If one of several
 * statements fails, all later ones and the commit fail with the first error. After the rollback the transaction sends
 * nothing more, because the server would commit it separately.
 *
 * `begin` is sent together with the first reads. The first write, and every statement after it, waits until the server
 * has begun the transaction. Named statements of a transaction wait until the end of the present microtasks, and are
 * then sent as few joined ones.
 */
function careful(client: PoolClient): PostgresPoolClient {
  /** Why the connection is not used again. */
  let broken: Error | undefined
  /** Whether the connection serves only one transaction. Migrations continue to use theirs afterwards. */
  let isOfOne: boolean | undefined
  let isUndone = false
  /** Why the server executes nothing more of the transaction. */
  let cause: Error | undefined
  /** Pending until the server has begun the transaction. */
  let beginning: Promise<void> | undefined
  let isHeld = false

  async function begin(): Promise<void> {
    try {
      await client.query('begin')
    } catch (error) {
      broken = error as Error
    } finally {
      beginning = undefined
    }
  }

  let gathered: Gathered[] = []

  function query(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<unknown>> {
    if (isOfOne && names.has(text)) return gather({ text, values })
    flush()
    return send(text, values)
  }

  function gather(part: Part): Promise<PostgresQueryResult<unknown>> {
    if (gathered.length === 0) process.nextTick(flush)
    return new Promise((resolve, reject) => gathered.push({ ...part, resolve, reject }))
  }

  function flush(): void {
    const parts = gathered
    gathered = []
    for (const run of runsOf(parts)) void sendRun(run)
  }

  async function sendRun(run: readonly Gathered[]): Promise<void> {
    try {
      const { text, values } = joined(run)
      nameStatement(text)
      const result = await send(text, values)
      for (const [index, rows] of rowsOf(result.rows, run).entries())
        run[index]!.resolve({ ...result, rows: [...rows] })
    } catch (error) {
      for (const { reject } of run) reject(error)
    }
  }

  async function send(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<unknown>> {
    if (broken) throw broken
    if (isUndone) throw new Error('the transaction is already undone')
    isOfOne ??= text === 'begin'
    if (isOfOne && text === 'begin') {
      beginning = begin()
      return NOTHING
    }
    isUndone = isOfOne && text === 'rollback'
    if (beginning && (isHeld ||= !ONLY_READS.test(text))) await beginning
    if (broken) throw broken
    try {
      const result = await client.query({ text, values: [...values], name: names.get(text) })
      if (broken) throw broken
      // The server answers the commit of a failed transaction so, without an error.
      if (text === 'commit' && result.command === 'ROLLBACK') throw new Error('the transaction has failed')
      cause = undefined
      return result as PostgresQueryResult<unknown>
    } catch (error) {
      const failure = (client as PoolClient & { hasEnded: boolean }).hasEnded
        ? unavailable(error)
        : (error as Error & { code?: string })
      // A transaction without a rollback would continue in the next use. After a refused write another server may
      // accept it.
      if (text === 'rollback' || failure.message === SILENT || USELESS.includes(failure.code ?? ''))
        broken = failure
      throw (cause ??= failure)
    }
  }
  return { query: query as PostgresPoolClient['query'], release: () => client.release(broken) }
}

/** A statement that waits to be sent. */
interface Gathered extends Part {
  resolve: (result: PostgresQueryResult<unknown>) => void
  reject: (error: unknown) => void
}

const NOTHING: PostgresQueryResult<never> = { command: 'SELECT', rowCount: 0, rows: [] }

/** If a connection ends, the server rolls back. The caller must get the first error, not the error of the rollback. */
class PatientDriver extends PostgresDriver {
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await super.rollbackTransaction(connection).catch(() => {})
  }
}

class PatientDialect extends PostgresDialect {
  readonly #config: ConstructorParameters<typeof PostgresDialect>[0]

  constructor(config: ConstructorParameters<typeof PostgresDialect>[0]) {
    super(config)
    this.#config = config
  }

  override createDriver(): PatientDriver {
    return new PatientDriver(this.#config)
  }
}

type Written = (error?: Error | null) => void

/**
 * A socket that combines all writes of one turn of the event loop into one system call, which costs more than a
 * statement. Encrypted connections send each write separately.
 */
export class GatheringSocket extends Socket {
  #isGathering = false

  /** Replaced only here, because a connecting socket resets its `write`. */
  override connect(...to: unknown[]): this {
    super.connect(...(to as Parameters<Socket['connect']>))
    this.write = this.#gather.bind(this)
    return this
  }

  #gather(chunk: Uint8Array | string, ...how: (BufferEncoding | Written | undefined)[]): boolean {
    if (!this.#isGathering) {
      this.#isGathering = true
      this.cork()
      // Twice: statements that are sent in the next tick (`careful`) leave in the same call.
      process.nextTick(() =>
        process.nextTick(() => {
          this.#isGathering = false
          this.uncork()
        }),
      )
    }
    return super.write(chunk, ...(how as [BufferEncoding?, Written?]))
  }
}
