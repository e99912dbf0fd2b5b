import { sql } from 'kysely'
import { cellOf, idsBefore } from '../cells.ts'
import { UsageError } from '../settings/usage-error.ts'
import { CELL_LOCK } from './advisory-locks.ts'
import type { CloudDatabase, Tx } from './database.ts'
import { issueAbove } from './next-id.ts'
import type { Tables } from './schema.ts'

/**
 * Tables with ids from the range of the cell: hubs, their owners, and what belongs to an owner. Orders and users are
 * numbered in each cell from 1: their number grows with the sales, not with the hubs.
 */
const ranged = [
  'hubs',
  'owners',
  'products',
  'deals',
  'deal_triggers',
  'deal_rewards',
  'deal_constraints',
  'banners',
  'alarm_contacts',
  'roles',
  'invitations',
] as const satisfies readonly (keyof Tables)[]

/**
 * Lets the tables of a new database issue ids of the cell. Throws a `UsageError` if the database has issued ids of another
 * cell: a proxy cannot distinguish two cells with the same ids.
 */
export async function takeCell(db: CloudDatabase, cell: number): Promise<void> {
  const before = await lastIds(db)
  requireCell(before, cell)
  if (cell === 0 || before.every(({ last }) => last > 0)) return
  await db.transact(async (tx) => {
    // Without the lock a late process could set the ids back while an earlier process issues them.
    if (tx.kind === 'postgres') await sql`select pg_advisory_xact_lock(${CELL_LOCK})`.execute(tx.q)
    const now = await lastIds({ kind: tx.kind, kysely: tx.q })
    requireCell(now, cell)
    for (const { name, last } of now)
      if (last === 0) await issueAbove(tx, name, { id: idsBefore(cell), maxStep: Infinity })
  })
}

interface Issued {
  name: (typeof ranged)[number]
  /** 0: none yet. */
  last: number
}

function requireCell(issued: readonly Issued[], cell: number): void {
  const other = issued.find(({ last }) => last > 0 && cellOf(last) !== cell)
  if (!other) return
  const theirs = cellOf(other.last)
  throw new UsageError(
    `CELL is ${cell}, and this database has issued ids of cell ${theirs} (${other.name} up to ${other.last}). A database stays in its cell: set CELL to ${theirs}, or use another database`,
  )
}

/** The highest id that each table has issued, including deleted rows. */
async function lastIds({ kind, kysely }: Pick<CloudDatabase, 'kind' | 'kysely'> | Lines): Promise<Issued[]> {
  const query =
    kind === 'sqlite'
      ? sql<{ name: string; last: number }>`select name, seq as last from sqlite_sequence`
      : sql<{ name: string; last: number | string | null }>`
          select name, pg_sequence_last_value(pg_get_serial_sequence(name, 'id')::regclass) as last
          from unnest(${sql.lit(`{${ranged.join(',')}}`)}::text[]) as name`
  const { rows } = await query.execute(kysely)
  const last = new Map(rows.map((row) => [row.name, Number(row.last ?? 0)]))
  return ranged.map((name) => ({ name, last: last.get(name) ?? 0 }))
}

type Lines = { kind: Tx['kind']; kysely: Tx['q'] }
