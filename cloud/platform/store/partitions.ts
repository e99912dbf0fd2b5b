import { sql } from 'kysely'
import { PARTITIONS_LOCK } from './advisory-locks.ts'
import type { CloudDatabase, Queries, Tx } from './database.ts'
import { tables, type Tables } from './schema.ts'
import { restOf } from './table.ts'

/**
 * Partitions of a table that declares `endsByAge`, on PostgreSQL. `T` is the table's name.
 *
 * | Partition | Rows |
 * |---|---|
 * | `T_from_20261130` | one week in UTC from that Monday on |
 * | `T_rest` | the default partition: times of no other partition, because a clock is wrong or the service was stopped |
 * | `T_before` | in a database that a version without partitions made: all rows until five weeks after the upgrade |
 *
 * A row never needs its partition: `T_rest` takes it, and the next run moves it. The database server reads every time
 * as a number, so its time zone is irrelevant.
 */
const WEEK_MS = 7 * 86_400_000
/** 5 January 1970 was a Monday. */
const MONDAY_MS = 4 * 86_400_000
/** Weeks that exist before their first row. A service that was stopped for a shorter time finds its partitions. */
const WEEKS_AHEAD = 4
/** All statements on the table wait behind a statement that waits for the whole table. */
const LOCK_MS = 500

type Name = Extract<keyof Tables, string>

interface Part {
  name: string
  /** Milliseconds since the Unix epoch. The default partition has -Infinity and Infinity. */
  from: number
  until: number
}

interface Times {
  now: number
  /** Rows are deleted after this time. */
  keptMs: number
}

const weekOf = (at: number): number => Math.floor((at - MONDAY_MS) / WEEK_MS) * WEEK_MS + MONDAY_MS
const weekName = (table: Name, from: number): string =>
  `${table}_from_${new Date(from).toISOString().slice(0, 10).replaceAll('-', '')}`
const formerOf = (table: Name): string => `${table}_before`

const columnOf = ({ kind }: CloudDatabase, table: Name): string | undefined =>
  kind === 'sqlite' ? undefined : tables[table].age?.column

export const isPartitioned = (db: CloudDatabase, table: Name): boolean => columnOf(db, table) !== undefined

/** The tables with rows that must be deleted one by one: the table itself if it has no partitions. */
export async function singlesOf(db: CloudDatabase, table: Name): Promise<string[]> {
  if (!isPartitioned(db, table)) return [table]
  const parts = await partsOf(db.kysely, table)
  return [restOf(table), formerOf(table)].filter((name) => parts.some((part) => part.name === name))
}

/**
 * Creates the partitions of the coming weeks, and drops the oldest one if it has expired rows only.
 *
 * Several processes may call it at the same time: one works, and the others leave the partitions unchanged.
 */
export async function tendPartitions(db: CloudDatabase, table: Name, { now, keptMs }: Times): Promise<void> {
  const column = columnOf(db, table)
  if (column === undefined) return
  const clock = await serverClock(db.kysely)
  const [earlier, later] = [Math.min(now, clock), Math.max(now, clock)]
  if (isFormer(table, await partsOf(db.kysely, table))) await separateFormer(db, table, column, later)
  await alone(db, (tx) => createWeeks(tx, table, column, earlier))
  // A clock that is ahead would drop everything at once. So the earlier of two clocks decides. If both are ahead, a person
  // has time to notice it.
  const [oldest] = (await partsOf(db.kysely, table)).toSorted((a, b) => a.until - b.until)
  if (oldest && oldest.until <= earlier - keptMs)
    await alone(db, ({ q }) => run(q, `drop table if exists ${oldest.name}`))
}

async function serverClock(q: Queries): Promise<number> {
  const { rows } = await sql<{
    now: number
  }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now`.execute(q)
  return rows[0]!.now
}

const run = (q: Queries, statement: string) => sql.raw(statement).execute(q)

/** Takes the lock for a transaction or a session, unless another process changes partitions at this moment. */
async function takeLock(q: Queries, of: 'xact_' | ''): Promise<boolean> {
  const { rows } = await sql<{
    is_ours: boolean
  }>`select ${sql.raw(`pg_try_advisory_${of}lock`)}(${PARTITIONS_LOCK}) as is_ours`.execute(q)
  return rows[0]!.is_ours
}

const alone = (db: CloudDatabase, work: (tx: Tx) => Promise<unknown>): Promise<void> =>
  db.transact(async (tx) => {
    if (!(await takeLock(tx.q, 'xact_'))) return
    await run(tx.q, `set local lock_timeout = ${LOCK_MS}`)
    await work(tx)
  })

const BOUNDS = /^FOR VALUES FROM \('?(-?\d+|MINVALUE)'?\) TO \('?(-?\d+)'?\)$/

async function partsOf(q: Queries, table: Name): Promise<Part[]> {
  const { rows } = await sql<{ name: string; bounds: string }>`
    select relname::text as name, pg_get_expr(relpartbound, oid) as bounds
    from pg_inherits join pg_class on oid = inhrelid
    where inhparent = ${table}::regclass order by relname`.execute(q)
  return rows.map(({ name, bounds }) => {
    const [, from = 'MINVALUE', until = 'Infinity'] = BOUNDS.exec(bounds) ?? []
    return { name, from: from === 'MINVALUE' ? -Infinity : Number(from), until: Number(until) }
  })
}

const isDefault = ({ from, until }: Part): boolean => from === -Infinity && until === Infinity

/** Whether the table of the former version is still the default partition. */
const isFormer = (table: Name, parts: readonly Part[]): boolean =>
  parts.some((part) => isDefault(part) && part.name === formerOf(table))

/**
 * Creates the missing partitions of this week and the coming ones, with the rows that the default partition has of
 * them. `attach` locks only the default partition against writes. `create table … partition of` would lock the table.
 */
async function createWeeks({ q }: Tx, table: Name, column: string, now: number): Promise<void> {
  const parts = await partsOf(q, table)
  if (isFormer(table, parts)) return
  for (let week = 0; week <= WEEKS_AHEAD; week += 1) {
    const from = weekOf(now) + week * WEEK_MS
    const until = from + WEEK_MS
    if (parts.some((part) => !isDefault(part) && part.from < until && part.until > from)) continue
    const name = weekName(table, from)
    await run(q, `create table ${name} (like ${table} including all)`)
    await run(q, `lock table ${restOf(table)} in access exclusive mode`)
    await move(q, { from: restOf(table), to: name, where: `${column} >= ${from} and ${column} < ${until}` })
    await run(q, `alter table ${table} attach partition ${name} for values from (${from}) to (${until})`)
  }
}

const move = (q: Queries, rows: { from: string; to: string; where: string }) =>
  run(
    q,
    `with moved as (delete from ${rows.from} where ${rows.where} returning *) insert into ${rows.to} select * from moved`,
  )

/**
 * Replaces the table of the former version as the default partition. The migration attached it as the default, because
 * PostgreSQL then reads no row. To attach it with an upper bound, PostgreSQL reads all rows while the table is
 * locked, unless a check has proved the bound. So a check is added, validated while others read and write, and replaced
 * by the bound. An interrupted run continues here.
 *
 * Until the end, the check refuses readings of more than four weeks ahead. Such a reading becomes a dead letter. So a
 * service that was stopped in between, for a shorter time, refuses no present reading.
 */
async function separateFormer(db: CloudDatabase, table: Name, column: string, now: number): Promise<void> {
  const [former, rest] = [formerOf(table), restOf(table)]
  await alone(db, async ({ q }) => {
    const check = await checkOf(q, former)
    if (check !== undefined && check.until > now + WEEKS_AHEAD * WEEK_MS) return
    const until = weekOf(now) + (WEEKS_AHEAD + 1) * WEEK_MS
    await run(q, `create table if not exists ${rest} (like ${table} including all)`)
    if (check) await run(q, `alter table ${former} drop constraint ${check.name}`)
    await move(q, { from: rest, to: former, where: 'true' })
    await run(q, `lock table ${former} in access exclusive mode`)
    await move(q, { from: former, to: rest, where: `${column} >= ${until}` })
    await run(q, `alter table ${former} add constraint until_${until} check (${column} < ${until}) not valid`)
  })
  await validate(db, former)
  await alone(db, async ({ q }) => {
    const check = await checkOf(q, former)
    if (!check?.is_valid || !isFormer(table, await partsOf(q, table))) return
    await run(q, `lock table ${table} in access exclusive mode`)
    await run(q, `alter table ${table} detach partition ${former}`)
    await run(
      q,
      `alter table ${table} attach partition ${former} for values from (minvalue) to (${check.until})`,
    )
    await run(q, `alter table ${table} attach partition ${rest} default`)
    await run(q, `alter table ${former} drop constraint ${check.name}`)
  })
}

/**
 * Reads all rows, for hours in a large table. Outside of a transaction, the server finishes even if this process ends.
 */
const validate = (db: CloudDatabase, former: string): Promise<void> =>
  db.unlimited((kysely) =>
    kysely.connection().execute(async (session) => {
      if (!(await takeLock(session, ''))) return
      try {
        const check = await checkOf(session, former)
        if (check?.is_valid === false)
          await run(session, `alter table ${former} validate constraint ${check.name}`)
      } finally {
        // The lock also ends with its connection.
        await sql`select pg_advisory_unlock(${PARTITIONS_LOCK})`.execute(session).catch(() => {})
      }
    }),
  )

async function checkOf(
  q: Queries,
  former: string,
): Promise<{ name: string; until: number; is_valid: boolean } | undefined> {
  const { rows } = await sql<{ name: string; is_valid: boolean }>`
    select conname::text as name, convalidated as is_valid from pg_constraint
    where conrelid = to_regclass(${former}) and contype = 'c' and conname like 'until\\_%'`.execute(q)
  const [row] = rows
  return row && { ...row, until: Number(row.name.slice('until_'.length)) }
}
