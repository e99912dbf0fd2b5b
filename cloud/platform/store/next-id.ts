import { sql } from 'kysely'
import type { Tx } from './database.ts'
import type { Tables } from './schema.ts'
import { statement } from './statement.ts'

/** The highest id that a table has issued, including deleted rows. */
async function lastIssued(tx: Tx, table: keyof Tables): Promise<number> {
  const { rows } =
    tx.kind === 'sqlite'
      ? await sql<{
          last: number | null
        }>`select seq as last from sqlite_sequence where name = ${table}`.execute(tx.q)
      : await sql<{ last: number | string | null }>`
          select pg_sequence_last_value(pg_get_serial_sequence(${table}, 'id')::regclass) as last`.execute(
          tx.q,
        )
  return Number(rows[0]?.last ?? 0)
}

/** Issues the id of a row that the transaction may insert, so that it can insert related rows at the same time. */
export async function nextId(tx: Tx, table: keyof Tables): Promise<number> {
  const [row] = await next(tx.q, { table })
  return row!.id
}

const next = statement((_, { table }: { table: string }, { kind }) =>
  kind === 'sqlite'
    ? sql<{
        id: number
      }>`select coalesce((select seq from sqlite_sequence where name = ${table}), 0) + 1 as id`
    : sql<{ id: number }>`select nextval(pg_get_serial_sequence(${table}, 'id')::regclass) as id`,
)

/**
 * Makes a table issue ids above `id`, if `id` is at most `maxStep` above the last one. Returns whether it moved. Ids
 * never move back.
 */
export async function issueAbove(
  tx: Tx,
  table: keyof Tables,
  { id, maxStep }: { id: number; maxStep: number },
): Promise<boolean> {
  if (!Number.isSafeInteger(id)) return false
  const last = await lastIssued(tx, table)
  if (id <= last || id - last > maxStep) return false
  if (tx.kind === 'postgres')
    await sql`select setval(pg_get_serial_sequence(${table}, 'id')::regclass, ${id})`.execute(tx.q)
  else {
    const updated =
      await sql`update sqlite_sequence set seq = ${id} where name = ${table} and seq < ${id}`.execute(tx.q)
    if (updated.numAffectedRows === 0n)
      await sql`insert into sqlite_sequence (name, seq) values (${table}, ${id})`.execute(tx.q)
  }
  return true
}
