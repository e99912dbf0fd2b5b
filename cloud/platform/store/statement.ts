import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely'
import type { Queries } from './database.ts'
import { SqliteFileAdapter } from './sqlite.ts'

/** Stands for a value that is given with each run. */
class Parameter {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/**
 * A query that is built and compiled once for each kind of database, and then only run: for the few that every request or
 * every message needs, of which building takes longer than running. `build` gets stand-ins for the values, which can
 * stand wherever a single value can; it must not look at them.
 */
export function statement<P extends object, Row>(
  build: (q: Queries, parameters: P) => Compilable<Row>,
): (q: Queries, parameters: P) => Promise<Row[]> {
  const standIns = new Proxy({}, { get: (_, name) => new Parameter(String(name)) }) as P
  const compiled = new WeakMap<DialectAdapter, CompiledQuery<Row>>()

  function compile(q: Queries): CompiledQuery<Row> {
    const { adapter } = q.getExecutor()
    const known = compiled.get(adapter)
    if (known) return known
    const query = build(q, standIns).compile()
    compiled.set(adapter, query)
    return query
  }

  return async (q, parameters) => {
    const query = compile(q)
    const values = query.parameters.map((value) =>
      value instanceof Parameter ? parameters[value.name as keyof P] : value,
    )
    const { adapter } = q.getExecutor()
    if (query.query.kind === 'SelectQueryNode' && !q.isTransaction && adapter instanceof SqliteFileAdapter)
      if (adapter.read) return adapter.read(query.sql, values) as Row[]
    const { rows } = await q.executeQuery<Row>({ ...query, parameters: values })
    return rows
  }
}
