import type BetterSqlite3 from 'better-sqlite3'
import { Kysely, sql, type Dialect, type SelectQueryBuilder, type Transaction } from 'kysely'
import { noCheckpoint, type Checkpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog, type Log } from '../../../protocol/model/log.ts'
import { migrate } from './migrate.ts'
import type { DatabaseKind } from './table.ts'
import { openPostgres } from './postgres.ts'
import type { Tables } from './schema.ts'
import { createSignal, type Signal } from './signal.ts'
import { openSqlite } from './sqlite.ts'

/** Where a query may run: inside a transaction or outside. */
export type Queries = Kysely<Tables>

/** One transaction. Nothing of the outside world happens in it: effects wait for `afterCommit`. */
export interface Tx {
  q: Transaction<Tables>
  kind: DatabaseKind
  /**
   * Runs at the end of the transaction, before it is committed: for what is derived from all that it has changed. Once for
   * each name.
   */
  beforeCommit(name: string, work: () => Promise<void>): void
  /** Runs once the transaction is committed, in the order of registration; never where it was rolled back. */
  afterCommit(effect: () => void): void
  /** Locks the rows that a query reads until the end (PostgreSQL; SQLite has one writer at a time anyway). */
  forUpdate<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>): SelectQueryBuilder<DB, TB, O>
  /** Tells this process's `onWake` listeners, after the commit, that the outbox of a hub has grown. */
  wake(hubId: number): void
  /** Tells this process's `onWorkDue` listeners, after the commit, when the work that was added is due. */
  workDue(dueAt: number): void
  /** Undoes `work` alone, and drops its effects, where it throws; the error is thrown on. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
}

export interface CloudDatabase {
  kysely: Kysely<Tables>
  kind: DatabaseKind
  migrate(): Promise<void>
  /** `work` may run more than once (see `isRetryable`): it must have no effect but its queries and `afterCommit`. */
  transact<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** Calls `listener` with a hub's id whenever a transaction of this process has added to its outbox. Returns an undo. */
  onWake(listener: (hubId: number) => void): () => void
  /** Calls `listener` with its time whenever a transaction of this process has made work due. Returns an undo. */
  onWorkDue(listener: (dueAt: number) => void): () => void
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** `sqlite:PATH`, `sqlite::memory:` or `postgres://…` */
  url: string
  checkpoint?: Checkpoint
  /** Told of connections that have ended. */
  log?: Log
  /** An open SQLite database to use instead of the one that `url` names. */
  sqlite?: BetterSqlite3.Database
  /** Puts something between the service and its database: a simulation, that makes it hang, refuse and break there. */
  through?: (dialect: Dialect) => Dialect
}

const MAX_ATTEMPTS = 20

/** Opens the cloud's database; the schema is brought up to date by `migrate`. */
export function openDatabase({
  url,
  checkpoint = noCheckpoint,
  log = silentLog,
  sqlite,
  through = (dialect) => dialect,
}: DatabaseOptions): CloudDatabase {
  const kind: DatabaseKind = sqlite || url.startsWith('sqlite:') ? 'sqlite' : 'postgres'
  const dialect = kind === 'sqlite' ? openSqlite(url, sqlite) : openPostgres(url, log)
  const kysely = new Kysely<Tables>({ dialect: through(dialect) })
  const outboxes = createSignal<number>()
  const workDue = createSignal<number>()

  async function once<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const effects: (() => void)[] = []
    const last = new Map<string, () => Promise<void>>()
    const result = await kysely.transaction().execute(async (q) => {
      const value = await work(createTx(q, kind, { effects, last }, { outboxes, work: workDue }))
      for (const derive of last.values()) await derive()
      checkpoint('db.before-commit')
      return value
    })
    checkpoint('db.after-commit')
    for (const effect of effects) effect()
    return result
  }

  return {
    kysely,
    kind,
    migrate: () => migrate(kysely, kind),
    async transact(work) {
      for (let attempt = 1; ; attempt += 1)
        try {
          return await once(work)
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error
        }
    },
    onWake: outboxes.listen,
    onWorkDue: workDue.listen,
    close: () => kysely.destroy(),
  }
}

function createTx(
  q: Transaction<Tables>,
  kind: DatabaseKind,
  { effects, last }: { effects: (() => void)[]; last: Map<string, () => Promise<void>> },
  signals: { outboxes: Signal<number>; work: Signal<number> },
): Tx {
  return {
    q,
    kind,
    beforeCommit(name, work) {
      if (!last.has(name)) last.set(name, work)
    },
    afterCommit: (effect) => void effects.push(effect),
    wake: (hubId) => void effects.push(() => signals.outboxes.emit(hubId)),
    workDue: (dueAt) => void effects.push(() => signals.work.emit(dueAt)),
    // Not FOR UPDATE: that would also stop other transactions from inserting rows that refer to the locked one.
    forUpdate: (query) => (kind === 'postgres' ? query.forNoKeyUpdate() : query),
    async savepoint(work) {
      const registered = effects.length
      const names = new Set(last.keys())
      await sql`savepoint part`.execute(q)
      try {
        const value = await work()
        await sql`release savepoint part`.execute(q)
        return value
      } catch (error) {
        effects.length = registered
        for (const name of last.keys()) if (!names.has(name)) last.delete(name)
        // Where the whole transaction is undone already (a full disk, an ended connection), why is what must be heard.
        await sql`rollback to savepoint part`.execute(q).catch(() => Promise.reject(error as Error))
        await sql`release savepoint part`.execute(q)
        throw error
      }
    },
  }
}

/**
 * Whether the same transaction may succeed when run again: PostgreSQL's serialization failure and deadlock. Whoever
 * catches errors inside a transaction lets these pass.
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
