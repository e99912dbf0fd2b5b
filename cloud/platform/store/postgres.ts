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
import type { PoolSettings } from '../settings/settings.ts'
import { GatheringSocket } from './gathering-socket.ts'
import { DatabaseUnavailable, reasonOf } from './outage.ts'
import {
  READ_ONLY,
  refusedSession,
  sessionQuery,
  type PostgresServers,
  type SessionFacts,
  type Way,
} from './postgres-servers.ts'

/** Connections to a server for one use of them, and how that use fares. */
export interface PostgresConnections {
  dialect: PostgresDialect
  state: () => PoolState
}

export interface PoolState {
  /** The most connections that there may be. */
  size: number
  /** Connections that somebody has. */
  busy: number
  idle: number
  /** Callers that wait for one. */
  waiting: number
  /** Callers that were given none in time, since the start. */
  refused: number
}

/** The error of `pg` if an answer does not come: whether the statement was run is unknown. */
const SILENT = 'Query read timeout'
/** The error of the pool if all connections are in use. */
const NONE_FREE = 'timeout exceeded when trying to connect'
/** The error of the pool if a server does not answer. */
const NOT_MADE = 'Connection terminated due to connection timeout'
/** The error of `pg` if a server has no TLS: of `sslmode=prefer` the way in clear is tried next. */
const NO_TLS = 'The server does not support SSL connections'
/** The server gives up a statement by itself (never where the setting is 0); only one that does not answer at all is given up here, so much later. */
const SILENCE_GRACE_MS = 1000
const KEEP_ALIVE_MS = 10_000

/**
 * PostgreSQL. Nothing waits without end: for a connection, for a lock, for a statement, or for a server that has fallen
 * silent. The driver is loaded with the first query: a command line on SQLite has no use for it.
 */
export function openPostgres(
  servers: PostgresServers,
  log: Log,
  settings: PoolSettings,
): PostgresConnections {
  let pool: Pool | undefined
  let refused = 0
  async function open(): Promise<PostgresPool> {
    const opened = (pool = await openPool(servers, log, settings))
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

/** A connection of the pool, by each way to a server in turn; else why there is none. */
async function connectTo(pool: Pool, servers: PostgresServers): Promise<PoolClient | Error> {
  const failures: Error[] = []
  for (let attempt = 0; attempt < servers.count; attempt += 1)
    try {
      return await pool.connect()
    } catch (error) {
      failures.push(unavailable(error))
      if (failures.at(-1)!.message === NONE_FREE) break
    }
  if (failures.length === 1) return failures[0]!
  const reasons = [...new Set(failures.map(({ message }) => message))]
  const telling = reasons.filter((text) => !text.endsWith(NO_TLS))
  return new DatabaseUnavailable((telling.length > 0 ? telling : reasons).join('; '), failures.at(-1))
}

const unavailable = (error: unknown): DatabaseUnavailable => {
  if (error instanceof DatabaseUnavailable) return error
  return new DatabaseUnavailable(error instanceof Error ? reasonOf(error) : String(error), error)
}

const NO_POOL = { totalCount: 0, idleCount: 0, waitingCount: 0 }

async function openPool(servers: PostgresServers, log: Log, settings: PoolSettings): Promise<Pool> {
  const { default: pg } = await import('pg')
  const { INT8, NUMERIC } = pg.types.builtins
  // Everything of ours is below 2^53, sums included, so that its 64-bit integers are plain numbers here.
  const plainNumbers: CustomTypesConfig = {
    getTypeParser: (oid, format) =>
      oid === INT8 || oid === NUMERIC
        ? Number
        : (pg.types.getTypeParser(oid, format) as (value: string) => unknown),
  }
  // A connection may break at any time: a restart, a failover, an administrator. Who has it at that moment gets the error by
  // the query under way; who has it and waits for something else gets it by the next one. An event without a listener would
  // end the process.
  const ended = (err: Error): void => log.warn({ err }, 'a connection to the database has ended')

  /** A connection to the server whose turn it is. It is connected when its session is set up and found to be of use. */
  class Session extends pg.Client {
    hasEnded = false
    readonly #way: Way
    /** Why it cannot be configured; the pool expects errors from `connect` only. */
    readonly #problem: DatabaseUnavailable | undefined

    constructor(config: PoolConfig) {
      const way = servers.current
      const { config: its, problem } = configured(() => servers.configOf(way))
      super({ ...config, ...its })
      this.#way = way
      this.#problem = problem
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
      this.on('error', (err) => {
        this.hasEnded = true
        ended(err)
      })
      const idleMs = settings.statementMs === 0 ? 0 : 2 * settings.statementMs + KEEP_ALIVE_MS
      const results: unknown = await this.query(sessionQuery({ ...settings, idleMs }))
      const facts = (results as { rows: SessionFacts[] }[]).at(-1)!.rows[0]!
      const { processID } = this as unknown as { processID: number | null }
      servers.isPooled = facts.pid !== processID
      const refusal = refusedSession(facts, this.#way.server)
      if (!refusal) return this
      this.end().catch(() => {})
      throw refusal
    }
  }

  // What a transaction asks at once goes out at once; the server does it in that order, one after the other.
  const pool = new pg.Pool({
    Client: Session as unknown as NonNullable<PoolConfig['Client']>,
    types: plainNumbers,
    pipeline: true,
    stream: () => new GatheringSocket(),
    ...boundsOf(settings),
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

const boundsOf = ({ connections, waitMs, statementMs }: PoolSettings): PoolConfig => ({
  max: connections,
  connectionTimeoutMillis: waitMs,
  query_timeout: statementMs === 0 ? 0 : statementMs + SILENCE_GRACE_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
})

/** Of statements that are run again and again: each connection has the server parse them once. */
const names = new Map<string, string>()

/** Has the server keep a statement of this text, of which there are few, for each connection that runs it. */
export function nameStatement(text: string): void {
  if (!names.has(text)) names.set(text, `s${names.size}`)
}

/** What goes out together with the beginning of a transaction: outside of one it would change nothing. */
const ONLY_READS = /^\s*select\b/i

/** Codes after which a connection is dropped: its server accepts no writes, or a pooler gives its statements to others. */
const USELESS = [READ_ONLY, '26000', '42P05']

/**
 * A connection on which an answer has not come is not used again: that answer would be taken for the next one's. Of what is
 * asked at once all fails for the reason of what failed first, and so does the commit of it. What goes on beside that once its
 * transaction is undone asks nothing more: it would be committed by itself.
 *
 * The beginning of a transaction goes out with what is read first in it; what writes waits until it has begun, and whatever
 * is asked behind that, too.
 */
function careful(client: PoolClient): PostgresPoolClient {
  /** Why it is not used again. */
  let broken: Error | undefined
  /** It is used for one transaction alone: migrations go on with it after theirs. */
  let isOfOne: boolean | undefined
  let isUndone = false
  /** Why the server does nothing more of the transaction. */
  let cause: Error | undefined
  /** Until the server has begun the transaction. */
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

  async function query(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<unknown>> {
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
      // So the server answers a commit of what has failed, without an error.
      if (text === 'commit' && result.command === 'ROLLBACK') throw new Error('the transaction has failed')
      cause = undefined
      return result as PostgresQueryResult<unknown>
    } catch (error) {
      const failure = (client as PoolClient & { hasEnded: boolean }).hasEnded
        ? unavailable(error)
        : (error as Error & { code?: string })
      // What could not be undone would be somebody else's transaction. Another server may accept writes.
      if (text === 'rollback' || failure.message === SILENT || USELESS.includes(failure.code ?? ''))
        broken = failure
      throw (cause ??= failure)
    }
  }
  return { query: query as PostgresPoolClient['query'], release: () => client.release(broken) }
}

const NOTHING: PostgresQueryResult<never> = { command: 'SELECT', rowCount: 0, rows: [] }

/** A connection that has ended has undone its transaction already; why it ended is what the caller must hear. */
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
