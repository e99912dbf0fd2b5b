import { sql } from 'kysely'
import type { Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import type { Tables } from '../platform/store/schema.ts'

const CHUNK = 5000

/** Inserts many rows, ids included, with few statements. All rows have the columns of the first. */
export async function insertMany(
  tx: Tx,
  table: keyof Tables,
  rows: readonly Record<string, string | number | null>[],
): Promise<void> {
  const first = rows[0]
  if (!first) return
  const names = Object.keys(first)
  const columns = Object.fromEntries(names.map((name) => [name, typeOf(rows, name)]))
  const list = sql.join(names.map((name) => sql.ref(name)))
  for (let from = 0; from < rows.length; from += CHUNK) {
    const source = recordset(tx.kind, columns, rows.slice(from, from + CHUNK))
    await sql`insert into ${sql.table(table)} (${list}) select ${list} from ${source}`.execute(tx.q)
  }
  // SQLite counts on from the greatest id by itself.
  if (tx.kind === 'postgres' && typeof first['id'] === 'number')
    await sql`select setval(pg_get_serial_sequence(${table}, 'id'), (select max(id) from ${sql.table(table)}))`.execute(
      tx.q,
    )
}

function typeOf(
  rows: readonly Record<string, string | number | null>[],
  name: string,
): 'int' | 'real' | 'text' {
  if (rows.some((row) => typeof row[name] === 'string')) return 'text'
  return rows.every((row) => row[name] === null || Number.isInteger(row[name])) ? 'int' : 'real'
}
