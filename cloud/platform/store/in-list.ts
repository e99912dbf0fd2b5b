import { PostgresAdapter, sql, type RawBuilder } from 'kysely'
import type { Queries } from './database.ts'
import { made, placesOf } from './parameter.ts'
import { columnTypes } from './recordset.ts'

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
