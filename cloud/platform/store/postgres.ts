import {
  PostgresDialect,
  PostgresDriver,
  type DatabaseConnection,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely'
import type { CustomTypesConfig, Pool, PoolClient, PoolConfig } from 'pg'
import type { Log } from '../../../protocol/model/log.ts'
import type { PoolSettings } from '../settings/settings.ts'
import { GatheringSocket } from './gathering-socket.ts'

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

/** What `pg` says where an answer does not come: the server is silent, and what becomes of the statement nobody knows. */
const SILENT = 'Query read timeout'
/** What `pg` says where no connection came free, and where none could be made in time. */
const NO_CONNECTION =
  /^(timeout exceeded when trying to connect|Connection terminated due to connection timeout)/
/** The server gives up a statement by itself (never where the setting is 0); only one that does not answer at all is given up here, so much later. */
const SILENCE_GRACE_MS = 1000
const KEEP_ALIVE_MS = 10_000

/**
 * PostgreSQL. Nothing waits without end: for a connection, for a lock, for a statement, or for a server that has fallen
 * silent. The driver is loaded with the first query: a command line on SQLite has no use for it.
 */
export function openPostgres(url: string, log: Log, settings: PoolSettings): PostgresConnections {
  let pool: Pool | undefined
  let refused = 0
  async function open(): Promise<PostgresPool> {
    const opened = (pool = await openPool(url, log, settings))
    return {
      async connect() {
        try {
          return careful(await opened.connect())
        } catch (error) {
          if (error instanceof Error && NO_CONNECTION.test(error.message)) refused += 1
          throw error
        }
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

const NO_POOL = { totalCount: 0, idleCount: 0, waitingCount: 0 }

async function openPool(url: string, log: Log, settings: PoolSettings): Promise<Pool> {
  const { default: pg } = await import('pg')
  const { INT8, NUMERIC } = pg.types.builtins
  // Everything of ours is below 2^53, sums included, so that its 64-bit integers are plain numbers here.
  const plainNumbers: CustomTypesConfig = {
    getTypeParser: (oid, format) =>
      oid === INT8 || oid === NUMERIC
        ? Number
        : (pg.types.getTypeParser(oid, format) as (value: string) => unknown),
  }
  // What a transaction asks at once goes out at once; the server does it in that order, one after the other.
  const pool = new pg.Pool({
    connectionString: url,
    types: plainNumbers,
    pipeline: true,
    stream: () => new GatheringSocket(),
    ...boundsOf(settings),
  })
  // A connection may break at any time: a restart, a failover, an administrator. Who has it at that moment gets the error by
  // the query under way; who has it and waits for something else gets it by the next one. An event without a listener would
  // end the process.
  const ended = (err: Error): void => log.warn({ err }, 'a connection to the database has ended')
  pool.on('connect', (client) => client.on('error', ended))
  pool.on('error', () => {})
  return pool
}

const boundsOf = ({ connections, waitMs, lockMs, statementMs }: PoolSettings): PoolConfig => ({
  max: connections,
  connectionTimeoutMillis: waitMs,
  lock_timeout: lockMs,
  statement_timeout: statementMs,
  query_timeout: statementMs === 0 ? 0 : statementMs + SILENCE_GRACE_MS,
  // A process that is stopped or cut off within a transaction does not keep others from what it has locked.
  idle_in_transaction_session_timeout: 2 * statementMs + KEEP_ALIVE_MS,
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
      // What could not be undone would be somebody else's transaction.
      if (text === 'rollback' || (error as Error).message === SILENT) broken = error as Error
      throw (cause ??= error as Error)
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
