import { sql, type RawBuilder } from 'kysely'
import { made, placesOf } from './parameter.ts'
import type { DatabaseKind } from './table.ts'

/** PostgreSQL's types of the values in lists and rows. */
export const columnTypes = { int: 'bigint', real: 'double precision', text: 'text' } as const
export type Cell = string | number | null

/**
 * Many rows as a few parameters: the source `r` of a statement. The text does not depend on the number of rows, so a
 * batch of thousands needs one prepared statement. Each database uses the form that measured fastest.
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
    // `limit -1` is no limit, but keeps SQLite from parsing the JSON again for each joined row.
    return sql`(select ${sql.raw(list)} from json_each(${json}) limit -1) as r`
  }
  const arrays = names.map(
    (name) =>
      sql`${made(rows, (given) => given.map((row) => row[name]))}::${sql.raw(columnTypes[columns[name]!])}[]`,
  )
  const columnNames = sql.join(names.map((name) => sql.ref(name)))
  const source = sql`unnest(${sql.join(arrays)}) as r(${columnNames})`
  const places = placesOf(rows)
  // The limit informs the planner of the number of rows.
  return places === undefined
    ? source
    : sql`(select ${columnNames} from ${source} limit ${sql.lit(places)}) as r`
}
