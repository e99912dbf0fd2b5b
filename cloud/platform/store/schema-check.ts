import { createHash } from 'node:crypto'
import type { DatabaseKind } from './table.ts'

/**
 * Each start compares the schema of the database with the schema that this build declares. A table that was edited in
 * place passes a migration and fails later, at the first statement that needs the edit. Each migration therefore
 * stores, in its transaction, a digest of the declared statements and a digest of each table from the catalogue.
 */

/** The schema differs from the declared schema. Nothing has been changed. */
export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused'
}

/** The row of `larder_schema`, written by the last migration. */
export interface StoredSchema {
  /** `digestOf` the statements that the build declared. */
  declared: string
  /** JSON: the digest of each declared table, by name. */
  tables: string
  /** The version of the build. */
  software: string
}

/** One fact about a table: a column, a constraint, an index. */
export interface SchemaFact {
  table: string
  fact: string
}

/** The present schema of a database: its executed migrations, the stored row, and its tables. */
interface FoundSchema {
  migrations: readonly string[]
  stored: StoredSchema | undefined
  facts: readonly SchemaFact[]
}

/** The schema that the build declares. */
export interface ExpectedSchema {
  /** The names of all migrations, in order. */
  migrations: readonly string[]
  declared: string
}

export const SCHEMA_TABLE = 'larder_schema'
export const createSchemaTable = `create table if not exists ${SCHEMA_TABLE} (id integer primary key check (id = 1), declared text not null, tables text not null, software text not null)`

export const digestOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16)

/** The digest of each of these tables. A table that is absent has the digest of no facts. */
export function tableDigests(facts: readonly SchemaFact[], names: readonly string[]): Record<string, string> {
  const byTable = new Map(names.map((name) => [name, [] as string[]]))
  for (const { table, fact } of facts) byTable.get(table)?.push(fact)
  return Object.fromEntries([...byTable].map(([name, lines]) => [name, digestOf(lines.toSorted())]))
}

/**
 * Throws `SchemaRefused` if the build must not use the database. A database without tables passes. A database
 * with fewer migrations than the build passes if its tables are unchanged: the next migrations follow.
 */
export function judgeSchema({ migrations, stored, facts }: FoundSchema, expected: ExpectedSchema): void {
  const newest = migrations.at(-1)
  if (newest === undefined) return
  const last = expected.migrations.at(-1)!
  if (newest > last)
    throw new SchemaRefused(
      `its schema is ${newest}, this software knows ${last}: newer software has written it. Install that version again, or put back a backup from before the upgrade`,
    )
  if (stored === undefined)
    throw new SchemaRefused(
      'an older build made its tables, and this build has no migration for them. Start the older build with it, or name another database',
    )
  if (newest === last && stored.declared !== expected.declared)
    throw new SchemaRefused(
      `build ${stored.software} made its tables (schema ${stored.declared}), this build needs schema ${expected.declared} and has no migration between the two. Start that build with it, or name another database`,
    )
  const then = JSON.parse(stored.tables) as Record<string, string>
  const now = tableDigests(facts, Object.keys(then))
  const changed = Object.keys(then).filter((name) => then[name] !== now[name])
  if (changed.length > 0)
    throw new SchemaRefused(
      `a person has changed its ${changed.length === 1 ? 'table' : 'tables'} ${changed.join(', ')} by hand. Undo the change, or put back a backup`,
    )
}

/**
 * Reads the facts of all tables: columns `table`, `fact`. It ignores triggers and views, which belong to the operator.
 * On PostgreSQL the facts contain no expressions, because their text differs between server versions. `late`: indexes
 * that are built after a migration and may still be missing.
 */
export const factsQuery = (kind: DatabaseKind, late: readonly string[]): string =>
  kind === 'sqlite' ? sqliteFacts(late) : postgresFacts(late)

const without = (column: string, names: readonly string[]): string =>
  names.length === 0 ? '' : `and ${column} not in (${names.map((name) => `'${name}'`).join(', ')})`

const sqliteFacts = (late: readonly string[]): string => `
  select tbl_name as "table", sql as fact from sqlite_master
  where type in ('table', 'index') and sql is not null and tbl_name not like 'sqlite\\_%' escape '\\' ${without('name', late)}`

const postgresFacts = (late: readonly string[]): string => `
  with ours as (
    select oid, relname::text as name from pg_class
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  ), keys as (
    select i.indexrelid, c.relname::text as name, i.indrelid, i.indisunique, i.indpred is not null as is_partial,
      (select string_agg(coalesce(a.attname::text, '?'), ',' order by k.place)
       from unnest(i.indkey::int2[]) with ordinality as k(number, place)
       left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number) as columns
    from pg_index i join pg_class c on c.oid = i.indexrelid
  )
  select name as "table", concat_ws(' ', 'column', attname, format_type(atttypid, atttypmod), collname,
      case when attnotnull then 'not null' end, case when atthasdef then 'default' end, nullif(attidentity::text, '')) as fact
    from ours join pg_attribute on attrelid = ours.oid and attnum > 0 and not attisdropped
    left join pg_collation on pg_collation.oid = attcollation
  union all
  select ours.name, concat_ws(' ', 'constraint', conname, contype::text, confrelid::regclass::text, confdeltype::text,
      (select string_agg(attname::text, ',' order by place) from unnest(conkey) with ordinality as k(number, place)
       join pg_attribute on attrelid = conrelid and attnum = number))
    from ours join pg_constraint on conrelid = ours.oid and contype in ('p', 'u', 'f', 'c')
  union all
  select ours.name, concat_ws(' ', 'index', keys.name, keys.columns, keys.indisunique::text, keys.is_partial::text)
    from ours join keys on keys.indrelid = ours.oid where true ${without('keys.name', late)}`
