import { PostgresAdapter, sql, type Expression, type RawBuilder } from 'kysely'
import type { Queries } from './database.ts'

type Sql = Expression<unknown>

/**
 * JSON functions of a database. The database itself writes the frequent answers with many rows, because building
 * objects in the service only to serialize them takes several times as long.
 */
interface JsonSql {
  object(fields: Readonly<Record<string, Sql>>): RawBuilder<string>
  /** The rows of a query as an array; `[]` if there are none. */
  arrayOf(item: Sql, order: Sql): RawBuilder<string>
  boolean(condition: Sql): RawBuilder<boolean>
  /** `timestamp` (`calendar/days.ts`) of milliseconds since the Unix epoch. */
  timestamp(at: Sql): RawBuilder<string>
  /** The JSON of a subquery, nested in other JSON. SQLite 3.54 would otherwise treat it as text. */
  nested(query: Sql): RawBuilder<string>
  /** JSON as text that is sent unchanged. */
  text(json: Sql): RawBuilder<string>
}

const pairs = (fields: Readonly<Record<string, Sql>>): RawBuilder<unknown> =>
  sql.join(Object.entries(fields).flatMap(([name, value]) => [sql.lit(name), value]))

const sqlite: JsonSql = {
  object: (fields) => sql`json_object(${pairs(fields)})`,
  arrayOf: (item, order) => sql`json_group_array(${item} order by ${order})`,
  boolean: (condition) => sql`json(iif(${condition}, 'true', 'false'))`,
  timestamp: (at) => sql`strftime('%Y-%m-%dT%H:%M:%fZ', ${at} / 1000.0, 'unixepoch')`,
  nested: (query) => sql`json((${query}))`,
  text: (json) => sql`${json}`,
}

const postgres: JsonSql = {
  object: (fields) => sql`json_build_object(${pairs(fields)})`,
  arrayOf: (item, order) => sql`coalesce(json_agg(${item} order by ${order}), '[]')`,
  boolean: (condition) => sql`(${condition})`,
  timestamp: (at) =>
    sql`to_char(to_timestamp(${at} / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  nested: (query) => sql`(${query})`,
  text: (json) => sql`(${json})::text`,
}

export const jsonOf = (q: Queries): JsonSql =>
  q.getExecutor().adapter instanceof PostgresAdapter ? postgres : sqlite

/** A value of type `Body` in the JSON that a database wrote. */
export class JsonText<Body> {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  read(): Body {
    return JSON.parse(this.text) as Body
  }
}
