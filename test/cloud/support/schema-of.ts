import { sql } from 'kysely'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'

/**
 * A database's schema as sorted lines, one for each column, constraint and index, to compare schemas of
 * different origins. Kysely's migration tables are left out.
 */
export async function schemaOf({ kysely, kind }: CloudDatabase): Promise<string[]> {
  const { rows } = await (kind === 'sqlite' ? sqliteSchema : postgresSchema).execute(kysely)
  return rows
    .flatMap(({ name, text }) => (kind === 'sqlite' ? parts(text) : [text]).map((part) => `${name}: ${part}`))
    .sort()
}

const sqliteSchema = sql<{ name: string; text: string }>`
  select tbl_name as name, sql as text from sqlite_master
  where sql is not null and tbl_name not like 'kysely_%' and tbl_name <> 'larder_schema' and tbl_name not like 'sqlite_%'`

/** The columns and constraints of a table, and the rest of its statement; an index unchanged. */
function parts(statement: string): string[] {
  const text = statement.replaceAll(/\s+/g, ' ').trim()
  if (!text.startsWith('CREATE TABLE')) return [text]
  const [open, close] = [text.indexOf('('), text.lastIndexOf(')')]
  const found = ['']
  let depth = 0
  for (const character of text.slice(open + 1, close)) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (character === ',' && depth === 0) found.push('')
    else found[found.length - 1] += character
  }
  return [`${text.slice(0, open)}()${text.slice(close + 1)}`, ...found.map((part) => part.trim())]
}

const postgresSchema = sql<{ name: string; text: string }>`
  with ours as (
    select oid, relname as name, relpersistence from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname not like 'kysely_%' and relname <> 'larder_schema'
  )
  select name::text, 'persistence ' || relpersistence::text as text from ours
  union all
  select name, 'partitions ' || pg_get_partkeydef(oid) from ours where pg_get_partkeydef(oid) is not null
  union all
  select name, concat_ws(' ', attname, format_type(atttypid, atttypmod), collname,
    case when attnotnull then 'not null' end, case when attidentity <> '' then 'identity' end, pg_get_expr(adbin, adrelid))
  from ours join pg_attribute on attrelid = ours.oid and attnum > 0 and not attisdropped
    left join pg_collation on pg_collation.oid = attcollation
    left join pg_attrdef on adrelid = ours.oid and adnum = attnum
  union all
  select name, pg_get_constraintdef(pg_constraint.oid) from ours join pg_constraint on conrelid = ours.oid
  union all
  select name, pg_get_indexdef(indexrelid) from ours join pg_index on indrelid = ours.oid`
