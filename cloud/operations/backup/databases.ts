import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { sql, type Kysely } from 'kysely'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Random } from '../../../protocol/model/runtime.ts'
import { openDatabase } from '../../platform/store/database.ts'
import { RUNNING_LOCK } from '../../platform/store/advisory-locks.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { placeOf } from '../../platform/store/outage.ts'
import { Sqlite } from '../../platform/store/sqlite-driver.ts'
import { migrationsQuery, storedQuery } from '../../platform/store/migrate.ts'
import { both, ended, type Manifest } from './archive.ts'

/** Copies and restores one kind of database. `url` is a `DATABASE_URL`. */
export interface BackupDatabase {
  /** Copies a running database into a file. Returns its schema; undefined if the database has no tables. */
  copyTo(file: string): Promise<Pick<Manifest, 'schema_version' | 'schema'> | undefined>
  /** Puts a copy into an empty scratch database, gives its address to `work`, and removes it. */
  scratch<T>(file: string, random: Random, work: (url: string) => Promise<T>): Promise<T>
  /**
   * Puts a copy in place of the database. Throws if a process uses the database, or if it has rows and `force` is false.
   * A failed restore changes nothing.
   */
  replaceBy(file: string, force: boolean): Promise<void>
}

export const backupDatabase = (url: string): BackupDatabase =>
  url.startsWith('sqlite:') ? sqliteFile(url.slice('sqlite:'.length)) : postgresServer(url)

export const kindOf = (url: string): Manifest['database'] =>
  url.startsWith('sqlite:') ? 'sqlite' : 'postgres'

const running = (place: string): Error =>
  new Error(`the database ${place} is in use: stop every process of the cloud, then restore`)
const notEmpty = (place: string): Error =>
  new Error(`the database ${place} has rows: --force replaces them by the backup`)

function sqliteFile(path: string): BackupDatabase {
  return {
    async copyTo(file) {
      if (!existsSync(path)) return undefined
      const source = new Sqlite(path, { readonly: true })
      try {
        const has = source.prepare("select 1 from sqlite_master where name = 'larder_schema'").get()
        if (has === undefined) return undefined
        // All pages in one step: another process that writes would make a copy in steps start again.
        await source.backup(file, { progress: () => 0x7fffffff })
      } finally {
        source.close()
      }
      const copy = new Sqlite(file, { readonly: true })
      try {
        return schemaFrom((query) => copy.prepare<[], Record<string, string>>(query).all())
      } finally {
        copy.close()
      }
    },
    scratch: (file, _random, work) => work(`sqlite:${file}`),
    replaceBy(file, force) {
      const present = existsSync(path) ? seize(path) : undefined
      try {
        if (present && !force && hasRows(present)) throw notEmpty(path)
        chmodSync(file, 0o600)
        renameSync(file, path)
        for (const log of ['-wal', '-shm']) rmSync(`${path}${log}`, { force: true })
      } finally {
        present?.close()
      }
      return Promise.resolve()
    },
  }
}

const schemaFrom = (all: (query: string) => Record<string, string>[]) => ({
  schema_version: all(migrationsQuery).at(-1)!['name']!,
  schema: all(storedQuery)[0]!['declared']!,
})

/** Opens a file alone: SQLite leaves the WAL mode, and removes the log's files, only if no other process has the file open. */
function seize(path: string) {
  const database = new Sqlite(path, { timeout: 2000 })
  try {
    database.pragma('locking_mode = exclusive')
    database.pragma('journal_mode = delete')
    database.exec('begin exclusive; commit')
    return database
  } catch (error) {
    database.close()
    throw (error as { code?: string }).code?.startsWith('SQLITE_BUSY') ? running(path) : error
  }
}

function hasRows(database: ReturnType<typeof seize>): boolean {
  const names = database
    .prepare<[], string>(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'",
    )
    .pluck()
    .all()
  return database.prepare(someRow(names)).pluck().get() === 1
}

/** A query that returns 1 if a table has a row. The tables that describe the schema do not count. */
const someRow = (tables: readonly string[]): string => {
  const own = tables.filter((name) => !/^(kysely_migration|larder_schema)/.test(name))
  return `select ${own.map((name) => `exists (select 1 from "${name}")`).join(' or ') || '1 = 0'} as found`
}

/** Empties the schema, except objects of extensions. Tables first: they own sequences. */
const EMPTY_SCHEMA = `
  set client_min_messages = warning;
  do $$ declare statement text; begin
    foreach statement in array array(
      select format('drop %s if exists %s cascade', type, identity)
      from (
        select 1 as position, 'pg_class'::regclass as class, oid from pg_class
          where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')
        union all select 2, 'pg_class'::regclass, oid from pg_class
          where relnamespace = current_schema()::regnamespace and relkind = 'S'
        union all select 3, 'pg_proc'::regclass, oid from pg_proc where pronamespace = current_schema()::regnamespace
        union all select 4, 'pg_type'::regclass, oid from pg_type
          where typnamespace = current_schema()::regnamespace and typtype in ('d', 'e', 'r')
      ) as own, pg_identify_object(class, own.oid, 0)
      where not exists (select from pg_depend where classid = class and objid = own.oid and deptype = 'e')
      order by position)
    loop execute statement; end loop;
  end $$;
`

function postgresServer(url: string): BackupDatabase {
  async function at<T>(place: string, work: (q: Kysely<Tables>) => Promise<T>): Promise<T> {
    const db = openDatabase({ url: place }).for('background')
    try {
      return await work(db.kysely)
    } finally {
      await db.close()
    }
  }
  const rows = async (q: Kysely<Tables>, query: string): Promise<Record<string, string>[]> =>
    (await sql.raw<Record<string, string>>(query).execute(q)).rows
  return {
    copyTo: (file) =>
      at(url, async (q) => {
        if ((await rows(q, "select 1 as found where to_regclass('larder_schema') is not null")).length === 0)
          return undefined
        await run('pg_dump', url, '--format=custom', ...AS_ANYBODY, `--file=${file}`)
        const [migrations, stored] = [await rows(q, migrationsQuery), await rows(q, storedQuery)]
        return { schema_version: migrations.at(-1)!['name']!, schema: stored[0]!['declared']! }
      }),
    async scratch(file, random, work) {
      const name = `larder_scratch_${randomHex(random, 6)}`
      const place = url.replace(/^(postgres(?:ql)?:\/\/[^/]*)(?:\/[^?]*)?/, `$1/${name}`)
      await at(url, (q) => rows(q, `create database ${name} template template0 encoding 'UTF8'`))
      try {
        await run('pg_restore', place, ...AS_ANYBODY, '--exit-on-error', '--single-transaction', file)
        return await work(place)
      } finally {
        await at(url, (q) => rows(q, `drop database if exists ${name} with (force)`))
      }
    },
    replaceBy: (file, force) =>
      at(url, (q) =>
        q.connection().execute(async (session) => {
          // Every session of the service shares this lock, until it ends.
          const [lock] = await rows(session, `select pg_try_advisory_lock(${RUNNING_LOCK})::text as ours`)
          if (lock!['ours'] !== 'true') throw running(placeOf(url))
          const own = await rows(
            session,
            'select tablename as name from pg_tables where schemaname = current_schema()',
          )
          const [row] = await rows(session, someRow(own.map(({ name }) => name!)))
          if (row!['found'] && !force) throw notEmpty(placeOf(url))
          const [schema] = await rows(session, 'select current_schema() as name')
          try {
            await replaceSchema(url, file, schema!['name']!)
          } finally {
            await rows(session, `select pg_advisory_unlock(${RUNNING_LOCK})`)
          }
        }),
      ),
  }
}

const AS_ANYBODY = ['--no-owner', '--no-privileges']

/**
 * Replaces the whole schema by a copy, in one transaction. `pg_restore --clean` drops only tables of the copy: tables of newer
 * software would stay, or prevent the restore by their references.
 *
 * Without `commit`, which is sent after a complete copy, the server undoes everything.
 */
async function replaceSchema(url: string, file: string, schema: string): Promise<void> {
  const source = spawn('pg_restore', [...AS_ANYBODY, `--schema=${schema}`, '--file=-', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const isRead = ended(source)
  isRead.catch(() => {})
  const target = client('psql', url, ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1'], 'pipe')
  async function* script() {
    yield `begin;${EMPTY_SCHEMA}`
    yield* source.stdout
    await isRead
    // The copy of another schema would restore nothing.
    yield "reset search_path; select 'larder_schema'::regclass; commit;"
  }
  await both(ended(target), pipeline(script, target.stdin!))
}

const run = (program: string, url: string, ...words: string[]): Promise<void> =>
  ended(client(program, url, words, 'ignore'))

/** A client program of PostgreSQL. The password goes by the environment, which other users cannot read. */
function client(
  program: string,
  url: string,
  words: readonly string[],
  stdin: 'ignore' | 'pipe',
): ChildProcess {
  const [, before = '', password, after = ''] = /^([^:]+:\/\/[^:@/]*)(?::([^@/]*))?(.*)$/s.exec(url) ?? []
  // libpq does not know this parameter of the driver.
  const address = `${before}${after}`.replace(/([?&])uselibpqcompat=true&?/, '$1').replace(/[?&]$/, '')
  const env = { ...process.env, ...(password !== undefined && { PGPASSWORD: decodeURIComponent(password) }) }
  return spawn(program, [`--dbname=${address}`, ...words], { env, stdio: [stdin, 'ignore', 'pipe'] })
}
