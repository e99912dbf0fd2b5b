import { sql, type RawBuilder } from 'kysely'
import type { DatabaseKind } from './migrations/migration.ts'

const columnTypes = { int: 'bigint', real: 'double precision', text: 'text' } as const

/**
 * Many rows as one parameter: the source `r` of a statement whose text stays the same however many rows there are, so
 * that a batch of thousands costs one prepared statement.
 */
export function recordset<C extends Record<string, keyof typeof columnTypes>>(
  kind: DatabaseKind,
  columns: C,
  rows: readonly Record<keyof C & string, string | number | null>[],
): RawBuilder<unknown> {
  const json = JSON.stringify(rows)
  const names = Object.keys(columns)
  if (kind === 'sqlite') {
    const list = names.map((name) => `value ->> '$.${name}' as ${name}`).join(', ')
    return sql`(select ${sql.raw(list)} from json_each(${json})) as r`
  }
  const list = names.map((name) => `${name} ${columnTypes[columns[name]!]}`).join(', ')
  return sql`jsonb_to_recordset(${json}::jsonb) as r(${sql.raw(list)})`
}
