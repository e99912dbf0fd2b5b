import { Kysely, sql, type Dialect, type Transaction } from 'kysely'
import { noCheckpoint, type Checkpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog, type Log } from '../../../protocol/model/log.ts'
import { locksOf, type Locks } from './locks.ts'
import { hasNoTables, migrate } from './migrate.ts'
import type { DatabaseKind } from './table.ts'
import { defaultLimits, type DatabaseLimits, type PoolLimits } from '../settings/limits.ts'
import { openPostgres, type PoolState } from './postgres.ts'
import { PostgresServers } from './postgres-servers.ts'
import type { Tables } from './schema.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'
import { withConnection } from './transactions.ts'
import { DatabaseUnavailable } from './outage.ts'

/** A signal within this process, and its listeners. */
interface Signal<T> {
  emit: (value: T) => void
  /** Returns an undo. */
  listen: (listener: (value: T) => void) => () => void
}

function createSignal<T>(): Signal<T> {
  const listeners = new Set<(value: T) => void>()
  return {
    emit(value) {
      for (const listener of listeners) listener(value)
    },
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** Where a query may run: inside a transaction or outside. */
export type Queries = Kysely<Tables>

/** One transaction. It has no effects on the outside world: effects wait for `afterCommit`. */
export interface Tx extends Locks {
  q: Transaction<Tables>
  /** Derives data from all changes of the transaction, at its end before the commit, once per name. */
  beforeCommit(name: string, derive: Derivation): void
  /** Runs after the commit, in the order of registration. Does not run after a rollback. */
  afterCommit(effect: () => void): void
  /** After the commit, notifies this process's `onWake` listeners that a hub's outbox has grown. */
  wake(hubId: number): void
  /** After the commit, notifies this process's `onWorkDue` listeners of the due time of new work. */
  workDue(dueAt: number): void
  /** After the commit, notifies this process's `onNews` listeners of a change. */
  notify(news: News): void
  /** If `work` throws, undoes only its changes, drops its effects and throws the error again. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Reads, and returns a function that writes the derived data, if there is any. All derivations read at the same time,
 * then all write in the order of their registration. A derivation that must only be waited for returns no function.
 */
export type Derivation = () => Promise<(() => Promise<void>) | void>

/** A change that listeners in this process may want to show. Other processes find it by polling. */
type News = { kind: 'event' } | { kind: 'order'; orderId: number; hubId: number }

/** The purpose of a statement. Each use has its own connections, so that none waits for another's. */
type DatabaseUse = 'requests' | 'gateway' | 'background'

export interface CloudDatabase {
  /** For single statements. The use `requests` has separate connections for these and for transactions. */
  kysely: Kysely<Tables>
  kind: DatabaseKind
  /** The same database on the connections of another use. `openDatabase` returns the use `requests`. */
  for(use: DatabaseUse): CloudDatabase
  /** Rejects unless the server answers and accepts writes. It has its own connection, so busy pools do not matter. */
  ping(): Promise<void>
  /** The state of each use's connections. Empty if there is only one connection. */
  connections(): Readonly<Record<string, PoolState>>
  migrate(): Promise<void>
  /** Runs work on connections of its own without time limits, for statements that read a whole table. */
  unlimited<T>(work: (kysely: Queries) => Promise<T>): Promise<T>
  /** Whether the database has no tables of any build yet. */
  isEmpty(): Promise<boolean>
  /** `work` may run more than once (see `isRetryable`): it must have no effect but its queries and `afterCommit`. */
  transact<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Calls `listener` with a hub's id when a transaction of this process has added to that hub's outbox. Returns an
   * undo.
   */
  onWake(listener: (hubId: number) => void): () => void
  /** Calls `listener` with the due time when a transaction of this process has made work due. Returns an undo. */
  onWorkDue(listener: (dueAt: number) => void): () => void
  /** Calls `listener` when a transaction of this process has reported a change. Returns an undo. */
  onNews(listener: (news: News) => void): () => void
  close(): Promise<void>
}

export interface DatabaseOptions extends SqliteOptions {
  /** `sqlite:PATH`, `sqlite::memory:` or `postgres://…` */
  url: string
  checkpoint?: Checkpoint
  /** Receives ended connections. */
  log?: Log
  /** The number of connections per use, and their time limits. */
  pools?: DatabaseLimits
  /** Wraps the dialect. A simulation uses it to make the database hang, refuse and break. */
  through?: (dialect: Dialect) => Dialect
}

const MAX_ATTEMPTS = 20

/** Limits of the ping: no caller waits longer for the server. */
const PING: PoolLimits = { connections: 1, waitMs: 1000, lockMs: 1000, statementMs: 1000 }
/**
 * Seconds. Only new sessions notice a changed default of the database, a new password, or a lack of free connections.
 */
const PING_LIFETIME_S = 2
/** Fails with the code of a refused write, so that the connection is dropped and the next one tries another server. */
const PING_STATEMENT = `do $$ begin
  if current_setting('transaction_read_only')::boolean then
    raise read_only_sql_transaction using message = 'the server accepts no writes';
  end if;
end $$`
/** A schema change has no time limit. One process makes it while the others wait. */
const UNLIMITED: PoolLimits = { connections: 2, waitMs: 10_000, lockMs: 0, statementMs: 0 }

/** Opens the cloud's database; the schema is brought up to date by `migrate`. */
export function openDatabase({
  url,
  checkpoint = noCheckpoint,
  log = silentLog,
  pools = defaultLimits.database,
  through = (dialect) => dialect,
  ...options
}: DatabaseOptions): CloudDatabase {
  const kind: DatabaseKind = options.sqlite || url.startsWith('sqlite:') ? 'sqlite' : 'postgres'
  const server =
    kind === 'sqlite'
      ? oneConnection(openSqlite(url, options), through)
      : openPools(new PostgresServers(url, options.isBusy), log, pools, through)
  const signals: Signals = {
    outboxes: createSignal<number>(),
    work: createSignal<number>(),
    news: createSignal<News>(),
  }

  const viewFor = ({ statements, transactions }: Connections): CloudDatabase => ({
    kysely: statements,
    kind,
    for: (use) => views[use],
    async ping() {
      await server.ping()
    },
    connections: server.states,
    async migrate() {
      await server.unlimited((kysely) => migrate(kysely, kind))
      // Joined transactions are savepoints. SQLite would write the former content of their pages into temporary files: two
      // thirds of the write calls of a payment (177 without this line, 55 with it; `npm run bench -- --only shop`). A
      // migration sorts whole tables for an index, which memory may not hold.
      if (kind === 'sqlite') await sql`pragma temp_store = memory`.execute(statements)
    },
    unlimited: server.unlimited,
    isEmpty: () => hasNoTables(statements, kind),
    async transact(work) {
      for (let attempt = 1; ; attempt += 1)
        try {
          return await once(transactions, work)
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error
        }
    },
    onWake: signals.outboxes.listen,
    onWorkDue: signals.work.listen,
    onNews: signals.news.listen,
    close: server.close,
  })

  async function once<T>(kysely: Queries, work: (tx: Tx) => Promise<T>): Promise<T> {
    const effects: (() => void)[] = []
    const derivations = new Map<string, Derivation>()
    const result = await kysely.transaction().execute((q) =>
      withConnection(q, async () => {
        const value = await work(createTx(q, kind, { effects, derivations }, signals))
        await deriveAll(derivations)
        checkpoint('db.before-commit')
        return value
      }),
    )
    checkpoint('db.after-commit')
    for (const effect of effects) effect()
    return result
  }

  const views: Record<DatabaseUse, CloudDatabase> = {
    requests: viewFor(server.requests),
    gateway: viewFor(server.gateway),
    background: viewFor(server.background),
  }
  return views.requests
}

/** The connections of one use. */
interface Connections {
  statements: Queries
  transactions: Queries
}

interface Server extends Record<DatabaseUse, Connections> {
  ping: () => Promise<unknown>
  states: CloudDatabase['connections']
  unlimited: CloudDatabase['unlimited']
  close: () => Promise<void>
}

type Through = NonNullable<DatabaseOptions['through']>

/** SQLite has a single writing connection for all uses. */
function oneConnection(dialect: Dialect, through: Through): Server {
  const kysely = new Kysely<Tables>({ dialect: through(dialect) })
  const all: Connections = { statements: kysely, transactions: kysely }
  return {
    requests: all,
    gateway: all,
    background: all,
    ping: () => sql`select 1`.execute(kysely),
    states: () => ({}),
    unlimited: (work) => work(kysely),
    close: () => kysely.destroy(),
  }
}

/** Pools connect at their first use. */
function openPools(servers: PostgresServers, log: Log, settings: DatabaseLimits, through: Through): Server {
  const open = (pool: PoolLimits, lifetimeS?: number) => {
    const { dialect, state } = openPostgres(servers, log, pool, lifetimeS)
    return { kysely: new Kysely<Tables>({ dialect: through(dialect) }), state }
  }
  const ping = open(PING, PING_LIFETIME_S).kysely
  const [reads, writes] = [open(settings.reads), open(settings.writes)]
  const [gateway, background] = [open(settings.gateway), open(settings.background)]
  const pools = { reads, writes, gateway, background }
  const alone = ({ kysely }: typeof gateway): Connections => ({ statements: kysely, transactions: kysely })
  return {
    requests: { statements: reads.kysely, transactions: writes.kysely },
    gateway: alone(gateway),
    background: alone(background),
    ping: () => sql.raw(PING_STATEMENT).execute(ping),
    states: () => Object.fromEntries(Object.entries(pools).map(([name, { state }]) => [name, state()])),
    async unlimited(work) {
      const { kysely } = open(UNLIMITED)
      try {
        await kysely.connection().execute((db) => sql`select 1`.execute(db))
        if (servers.isPooled) await refuseSharedSessions(kysely)
        return await work(kysely)
      } finally {
        await kysely.destroy()
      }
    },
    async close() {
      await Promise.all(
        [ping, ...Object.values(pools).map(({ kysely }) => kysely)].map((kysely) => kysely.destroy()),
      )
    },
  }
}

interface Signals {
  outboxes: Signal<number>
  work: Signal<number>
  news: Signal<News>
}

/** A derivation may register more of them. */
async function deriveAll(registered: ReadonlyMap<string, Derivation>): Promise<void> {
  const done = new Set<string>()
  for (;;) {
    const due = [...registered].filter(([name]) => !done.has(name))
    if (due.length === 0) return
    for (const [name] of due) done.add(name)
    const writes = await Promise.all(due.map(([, derive]) => derive()))
    await Promise.all(writes.map(async (write) => write?.()))
  }
}

function createTx(
  q: Transaction<Tables>,
  kind: DatabaseKind,
  { effects, derivations }: { effects: (() => void)[]; derivations: Map<string, Derivation> },
  signals: Signals,
): Tx {
  return {
    ...locksOf(kind),
    q,
    beforeCommit(name, derive) {
      if (!derivations.has(name)) derivations.set(name, derive)
    },
    afterCommit: (effect) => void effects.push(effect),
    wake: (hubId) => void effects.push(() => signals.outboxes.emit(hubId)),
    workDue: (dueAt) => void effects.push(() => signals.work.emit(dueAt)),
    notify: (news) => void effects.push(() => signals.news.emit(news)),
    async savepoint(work) {
      const registered = effects.length
      const names = new Set(derivations.keys())
      await sql`savepoint part`.execute(q)
      try {
        const value = await work()
        await sql`release savepoint part`.execute(q)
        return value
      } catch (error) {
        effects.length = registered
        for (const name of derivations.keys()) if (!names.has(name)) derivations.delete(name)
        // If the whole transaction is already undone (a full disk, an ended connection), the original error must reach
        // the caller.
        await sql`rollback to savepoint part`.execute(q).catch(() => Promise.reject(error as Error))
        await sql`release savepoint part`.execute(q)
        throw error
      }
    },
  }
}

/**
 * Whether the same transaction may succeed if it runs again: PostgreSQL's serialization failure and deadlock. Code that
 * catches errors inside a transaction must rethrow these.
 */
export function isRetryable(error: unknown): boolean {
  const code = errorCode(error)
  return code === '40001' || code === '40P01'
}

/** Whether a unique index or a primary key refused a row. */
export function isUniqueViolation(error: unknown): boolean {
  const code = errorCode(error)
  return code === '23505' || code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY'
}

const errorCode = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

/** The pooler's other clients may hide the sharing in the first tries. */
const TRIES = 5

const pidOf = async (session: Kysely<Tables>): Promise<number> =>
  (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(session)).rows[0]!.pid

/**
 * Throws if a connection pooler gives the server's sessions to other clients between transactions (PgBouncer with
 * `pool_mode = transaction`). Session settings, prepared statements and advisory locks would then reach other clients.
 *
 * In session mode, two connections never share a server process, and each keeps its process. In transaction mode, the
 * second connection gets the process that the first one has just released, or the first one gets another process.
 */
async function refuseSharedSessions(kysely: Kysely<Tables>): Promise<void> {
  const found = await areShared(kysely).catch((error: unknown) =>
    error instanceof DatabaseUnavailable ? error.message : Promise.reject(error as Error),
  )
  if (found === false) return
  // In statement mode PgBouncer ends a connection that begins a transaction.
  const why = found === true ? 'gives its sessions to others between transactions' : `ended one (${found})`
  throw new DatabaseUnavailable(
    `a connection pooler stands between and ${why}, as PgBouncer does in transaction mode: set pool_mode = session for this database, or name the server itself`,
  )
}

const areShared = (kysely: Kysely<Tables>): Promise<boolean> =>
  kysely.connection().execute((first) =>
    kysely.connection().execute(async (second) => {
      for (let attempt = 0; attempt < TRIES; attempt += 1) {
        const [mine, again] = [await pidOf(first), await pidOf(first)]
        const [other, later] = await second
          .transaction()
          .execute(async (transaction) => [await pidOf(transaction), await pidOf(first)])
        if (mine !== again || mine !== later || mine === other) return true
      }
      return false
    }),
  )
