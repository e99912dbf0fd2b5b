import { sql, type RawBuilder, PostgresAdapter } from 'kysely'
import type { DatabaseKind } from './table.ts'
import type { Queries } from './database.ts'

/** Placeholder for a value that each run of a statement supplies (`statement.ts`). */
export class Parameter {
  readonly name: string
  /** For a list: the number of places in the text compiled for its length. Undefined: any length. */
  readonly places: number | undefined
  readonly #make: ((given: unknown) => unknown) | undefined

  constructor(name: string, places?: number, make?: (given: unknown) => unknown) {
    this.name = name
    this.places = places
    this.#make = make
  }

  /** The parameter's value among all values of a run. */
  of(given: object): unknown {
    const value = given[this.name as keyof typeof given] as unknown
    return this.#make ? this.#make(value) : value
  }
}

/** Converts a value now, or at each run if it is a placeholder. */
export const made = <T>(value: T, make: (given: T) => unknown): unknown =>
  value instanceof Parameter
    ? new Parameter(value.name, value.places, make as (given: unknown) => unknown)
    : make(value)

/** Lists up to this length have their own texts. */
const SHORT = 8

/**
 * The number of places for a list of this length: the next power of two, undefined beyond `SHORT`. A statement thus has
 * few texts, and the server plans each once for a realistic number of rows. For a list of unknown length the server
 * expects many more rows. It then scans the table instead of using the index, or plans again at each run.
 */
export const placesFor = (length: number): number | undefined =>
  length > SHORT ? undefined : 2 ** Math.ceil(Math.log2(Math.max(1, length)))

/** The number of places of a given list, or of a list placeholder. */
export const placesOf = (list: readonly unknown[] | Parameter): number | undefined =>
  list instanceof Parameter ? list.places : placesFor(list.length)

/** The values of a list for `in`: integers, or texts. Do not use it with `not in`: unused places are null. */
export const numbersIn = (q: Queries, list: readonly number[]): RawBuilder<number> => inList(q, list, 'int')
export const textsIn = (q: Queries, list: readonly string[]): RawBuilder<string> => inList(q, list, 'text')

function inList<T>(q: Queries, list: readonly T[], type: keyof typeof columnTypes): RawBuilder<T> {
  const places = placesOf(list)
  if (places !== undefined) {
    const values = Array.from({ length: places }, (_, index) => made(list, (given) => given[index] ?? null))
    return sql`(${sql.join(values)})`
  }
  return q.getExecutor().adapter instanceof PostgresAdapter
    ? sql`(select unnest(${list}::${sql.raw(columnTypes[type])}[]))`
    : sql`(select value from json_each(${made(list, (given) => JSON.stringify(given))}))`
}

/** PostgreSQL's types of the values in lists and rows. */
const columnTypes = { int: 'bigint', real: 'double precision', text: 'text' } as const
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
