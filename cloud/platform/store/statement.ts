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
import { Parameter } from './parameter.ts'
import { nameStatement } from './postgres.ts'
import { tables, type Tables } from './schema.ts'
import { SqliteFileAdapter } from './sqlite.ts'
import { connectionOf } from './transactions.ts'

/**
 * A query that is built and compiled once for each kind of database, and then only run: for what every request or every
 * message needs, as building takes longer than running. `build` gets stand-ins for the values, which can stand wherever a
 * single value can, and as the rows of a `recordset`; it must not look at them. Columns are named (`allOf`): PostgreSQL keeps
 * the statement, and refuses it when its rows look different from before.
 */
export function statement<P extends object, Row>(
  build: (q: Queries, parameters: P, locks: Locks) => Compilable<Row> | RawBuilder<Row>,
): (q: Queries, parameters: P) => Promise<Row[]> {
  const standIns = new Proxy({}, standIn) as P
  const compiled = new WeakMap<DialectAdapter, CompiledQuery<Row>>()

  function compile(q: Queries, adapter: DialectAdapter): CompiledQuery<Row> {
    const known = compiled.get(adapter)
    if (known) return known
    const kind = adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
    const query = (build(q, standIns, locksOf(kind)) as RawBuilder<Row>).compile(q)
    if (EVERY_COLUMN.test(query.sql)) throw new Error(`the columns of a statement are named: ${query.sql}`)
    if (kind === 'postgres') nameStatement(query.sql)
    compiled.set(adapter, query)
    return query
  }

  return async (q, parameters) => {
    const executor = q.getExecutor()
    const { adapter } = executor
    const query = compile(q, adapter)
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

const standIn: ProxyHandler<object> = {
  get: (_, name) => new Parameter(String(name)),
  ownKeys() {
    throw new Error('the values of a statement are taken by name: a rest or a spread would hold none')
  },
}

/** Every column of a table. */
export const allOf = <T extends keyof Tables>(table: T): (keyof Tables[T] & string)[] =>
  Object.keys(tables[table].columns) as (keyof Tables[T] & string)[]

/** Changes a row of a table by its id: compiled once for each set of columns, of which there are few. */
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
