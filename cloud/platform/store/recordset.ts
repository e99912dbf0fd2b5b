import { sql, type RawBuilder } from 'kysely'
import { made, placesOf } from './parameter.ts'
import type { DatabaseKind } from './table.ts'

/** PostgreSQL's types of what lists and rows hold. */
export const columnTypes = { int: 'bigint', real: 'double precision', text: 'text' } as const
export type Cell = string | number | null

/**
 * Many rows as a few parameters: the source `r` of a statement whose text stays the same however many rows there are, so
 * that a batch of thousands costs one prepared statement. In each database by what measured fastest there.
 */
export function recordset<C extends Record<string, keyof typeof columnTypes>>(
  kind: DatabaseKind,
  columns: C,
  rows: readonly Record<keyof C & string, Cell>[],
): RawBuilder<unknown> {
  const names: (keyof C & string)[] = Object.keys(columns)
  if (kind === 'sqlite') {
    const json = made(rows, (given) => JSON.stringify(given.map((row) => names.map((name) => row[name]))))
    const list = names.map((name, index) => `value ->> ${index} as "${name}"`).join(', ')
    // The limit, which is none, keeps SQLite from reading the JSON anew for each row that it is joined to.
    return sql`(select ${sql.raw(list)} from json_each(${json}) limit -1) as r`
  }
  const arrays = names.map(
    (name) =>
      sql`${made(rows, (given) => given.map((row) => row[name]))}::${sql.raw(columnTypes[columns[name]!])}[]`,
  )
  const columnNames = sql.join(names.map((name) => sql.ref(name)))
  const source = sql`unnest(${sql.join(arrays)}) as r(${columnNames})`
  const places = placesOf(rows)
  // The limit tells the server how many rows to expect.
  return places === undefined
    ? source
    : sql`(select ${columnNames} from ${source} limit ${sql.lit(places)}) as r`
}
