import {
  PostgresAdapter,
  type Compilable,
  type CompiledQuery,
  type DialectAdapter,
  type RawBuilder,
  type Updateable,
} from 'kysely'
import type { Queries } from './database.ts'
import { locksOf, type Locks } from './locks.ts'
import { Parameter, placesFor } from './recordset.ts'
import { nameStatement } from './postgres.ts'
import { tables, type Tables } from './schema.ts'
import { SqliteFileAdapter } from './sqlite.ts'
import { connectionOf } from './transactions.ts'

/**
 * A query that is built and compiled once per kind of database, because building takes longer than running. Use it for
 * queries of every request or message. `build` gets placeholders for the values and must not read them. A placeholder
 * can replace a single value, the rows of a `recordset` or the values of an `in` list. Name the columns (`allOf`):
 * PostgreSQL keeps the statement, and refuses it if its rows have changed their shape.
 */
export function statement<P extends object, Row>(
  build: (q: Queries, parameters: P, locks: Locks) => Compilable<Row> | RawBuilder<Row>,
): (q: Queries, parameters: P) => Promise<Row[]> {
  /** By the number of places of its lists. */
  const compiled = new WeakMap<DialectAdapter, Map<number | undefined, CompiledQuery<Row>>>()

  function compile(q: Queries, adapter: DialectAdapter, places: number | undefined): CompiledQuery<Row> {
    let texts = compiled.get(adapter)
    if (!texts) compiled.set(adapter, (texts = new Map()))
    const known = texts.get(places)
    if (known) return known
    const kind = adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
    const standIns = new Proxy({}, standIn(places)) as P
    const built = (build(q, standIns, locksOf(kind)) as RawBuilder<Row>).compile(q)
    if (EVERY_COLUMN.test(built.sql)) throw new Error(`the columns of a statement are named: ${built.sql}`)
    // The connection knows statements by their texts, and joined ones have no count of changed rows. A space distinguishes
    // them from a query with the same text, whose caller may need that count.
    const query = kind === 'postgres' ? { ...built, sql: `${built.sql} ` } : built
    if (kind === 'postgres') nameStatement(query.sql)
    texts.set(places, query)
    return query
  }

  return async (q, parameters) => {
    const executor = q.getExecutor()
    const { adapter } = executor
    const query = compile(q, adapter, placesForAll(parameters))
    const values = query.parameters.map((value) =>
      value instanceof Parameter ? value.of(parameters) : value,
    )
    const run = { ...query, parameters: values }
    const connection = connectionOf(executor)
    if (connection) return (await connection.executeQuery<Row>(run)).rows
    if (query.query.kind === 'SelectQueryNode' && !q.isTransaction && adapter instanceof SqliteFileAdapter)
      if (adapter.read) return adapter.read(query.sql, values) as Row[]
    const { rows } = await q.executeQuery<Row>(run)
    return rows
  }
}

const EVERY_COLUMN = /\b(select|returning) \*|"\.\*/i

const standIn = (places: number | undefined): ProxyHandler<object> => ({
  get: (_, name) => new Parameter(String(name), places),
  ownKeys() {
    throw new Error('the values of a statement are taken by name: a rest or a spread would hold none')
  },
})

/** The places for the longest list of a run. */
function placesForAll(parameters: object): number | undefined {
  let longest = 0
  for (const value of Object.values(parameters))
    if (Array.isArray(value) && value.length > longest) longest = value.length
  return placesFor(longest)
}

/** Every column of a table. */
export const allOf = <T extends keyof Tables>(table: T): (keyof Tables[T] & string)[] =>
  Object.keys(tables[table].columns) as (keyof Tables[T] & string)[]

/** Updates a row by its id. Compiled once per set of columns, of which there are few. */
export function rowUpdate<T extends 'orders' | 'payments'>(
  table: T,
): (q: Queries, id: number, changes: Updateable<Tables[T]>) => Promise<void> {
  const known = new Map<string, (q: Queries, values: Record<string, unknown>) => Promise<unknown[]>>()
  return async (q, id, changes) => {
    const names = Object.keys(changes)
    const key = names.join()
    let update = known.get(key)
    if (!update) {
      update = statement((queries, values: Record<string, unknown>) =>
        queries
          .updateTable(table as 'orders')
          .set(Object.fromEntries(names.map((name) => [name, values[name]])))
          .where('id', '=', values['id'] as number),
      )
      known.set(key, update)
    }
    await update(q, { ...changes, id })
  }
}
