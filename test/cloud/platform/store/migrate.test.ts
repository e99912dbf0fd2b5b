import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase, type CloudDatabase, type Queries } from '../../../../cloud/platform/store/database.ts'
import { migrate, SCHEMA_VERSION, type NumberedMigration } from '../../../../cloud/platform/store/migrate.ts'
import { schemaStatements, tables } from '../../../../cloud/platform/store/schema.ts'
import { defineTable, text } from '../../../../cloud/platform/store/table.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { schemaOf } from '../../support/schema-of.ts'
import { releasedRows, releasedStatements } from './released.ts'
import { Sqlite } from '../../../../cloud/platform/store/sqlite-driver.ts'

/** Adds the rows of a released version. A table comes after the tables that it refers to. */
async function addReleasedRows({ kysely }: CloudDatabase): Promise<void> {
  const released = releasedRows()
  for (const name of Object.keys(tables))
    for (const row of released[name] ?? [])
      await kysely
        .insertInto(name as 'orders')
        .values(row as never)
        .execute()
}

/** The rows of the released tables and columns, without their order. */
async function releasedRowsIn({ kysely }: CloudDatabase): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const [name, rows] of Object.entries(releasedRows())) {
    const columns = Object.keys(rows[0]!)
    const stored = await kysely
      .selectFrom(name as 'orders')
      .select(columns as never[])
      .execute()
    found[name] = textsOf(stored, columns)
  }
  return found
}

const textsOf = (rows: readonly object[], columns: readonly string[]): string[] =>
  rows.map((row) => JSON.stringify(columns.map((column) => (row as Record<string, unknown>)[column]))).sort()

onEachDatabase('migrations', (open) => {
  async function openWithoutTables(): Promise<CloudDatabase> {
    const db = await open()
    if (db.kind === 'postgres') {
      await sql`drop schema public cascade`.execute(db.kysely)
      await sql`create schema public`.execute(db.kysely)
      return db
    }
    const empty = openDatabase({ url: 'sqlite::memory:' })
    onTestFinished(() => empty.close())
    return empty
  }
  /** Creates the tables by the first migration only. */
  const migrateFirst = ({ kysely, kind }: CloudDatabase) => migrate(kysely, kind, { numbered: [] })
  const applied = async ({ kysely }: CloudDatabase) =>
    (await sql<{ name: string }>`select name from kysely_migration order by name`.execute(kysely)).rows

  const digest = async ({ kysely }: CloudDatabase) =>
    (await sql<{ declared: string }>`select declared from larder_schema`.execute(kysely)).rows

  test('an upgraded database of the first release has the declared schema, its digest, and every row', async () => {
    const described = async (db: CloudDatabase) => ({
      schema: await schemaOf(db),
      migrations: await applied(db),
      digest: await digest(db),
    })
    const db = await openWithoutTables()
    await migrate(db.kysely, db.kind, { first: releasedStatements(db.kind), numbered: [] })
    await addReleasedRows(db)
    await db.migrate()
    const upgraded = await described(db)
    const rows = await releasedRowsIn(db)
    const fresh = await openWithoutTables()
    await fresh.migrate()
    expect(upgraded).toEqual(await described(fresh))
    for (const [name, released] of Object.entries(releasedRows()))
      expect([name, rows[name]]).toEqual([name, textsOf(released, Object.keys(released[0]!))])
    const states = releasedRows()['orders']!.map((order) => order['processing_status'])
    expect(new Set(states)).toEqual(new Set(Object.values(OrderStatus)))
  })

  test('a numbered migration of tables with orders in each state loses no row', async () => {
    const nicknames = {
      name: '9999-nicknames',
      statements: () => ['alter table orders add column nickname text'],
    }
    const db = await openWithoutTables()
    await migrateFirst(db)
    await addReleasedRows(db)
    const before = await releasedRowsIn(db)
    await migrate(db.kysely, db.kind, { numbered: [nicknames] })
    expect(await releasedRowsIn(db)).toEqual(before)
  })

  test('a later migration changes the tables of an older version, and new tables are created as declared', async () => {
    const nicknames = {
      name: '0002-nicknames',
      statements: () => ['alter table owners add column nickname text'],
    }
    const declared = { ...tables, owners: defineTable({ ...tables.owners.columns, nickname: text.nullable }) }
    const old = await openWithoutTables()
    await migrateFirst(old)
    const before = await schemaOf(old)
    const first = schemaStatements(old.kind, declared)
    await migrate(old.kysely, old.kind, { first, numbered: [nicknames] })
    const upgraded = { schema: await schemaOf(old), migrations: await applied(old) }
    expect(upgraded.schema).not.toEqual(before)
    expect(upgraded.migrations).toEqual([{ name: '0001-first' }, { name: '0002-nicknames' }])
    const fresh = await openWithoutTables()
    await migrate(fresh.kysely, fresh.kind, { first, numbered: [nicknames] })
    expect({ schema: await schemaOf(fresh), migrations: await applied(fresh) }).toEqual(upgraded)
  })

  test('software that is older than the database does not start, says why, and changes nothing', async () => {
    const db = await openWithoutTables()
    const statements = () => ['alter table owners add column nickname text']
    await migrate(db.kysely, db.kind, { numbered: [{ name: '9999-nicknames', statements }] })
    const newer = { schema: await schemaOf(db), migrations: await applied(db) }
    await expect(db.migrate()).rejects.toThrow(
      `its schema is 9999-nicknames, this software knows ${SCHEMA_VERSION}: newer software has written it`,
    )
    expect({ schema: await schemaOf(db), migrations: await applied(db) }).toEqual(newer)
  })

  test('a failed migration leaves the schema unchanged', async () => {
    const db = await openWithoutTables()
    await migrateFirst(db)
    const before = { schema: await schemaOf(db), migrations: await applied(db) }
    const statements = () => [
      'alter table owners add column nickname text',
      'alter table nowhere add column a text',
    ]
    await expect(
      migrate(db.kysely, db.kind, { numbered: [{ name: '0002-broken', statements }] }),
    ).rejects.toThrow('nowhere')
    expect({ schema: await schemaOf(db), migrations: await applied(db) }).toEqual(before)
  })

  const searchable = {
    ...tables,
    owners: defineTable(tables.owners.columns).index('owners_by_name', ['name']),
  }
  const byName: NumberedMigration = {
    name: '0002-owners-by-name',
    statements: () => [],
    concurrently: ['owners_by_name'],
  }
  const addIndex = (db: CloudDatabase) =>
    migrate(db.kysely, db.kind, { declared: searchable, numbered: [byName] })

  test('an index created during writes is as declared, also in a new database; it is created once, and not again after its removal', async () => {
    const old = await openWithoutTables()
    await migrateFirst(old)
    for (let start = 0; start < 2; start += 1) await addIndex(old)
    const upgraded = await schemaOf(old)
    await sql`drop index owners_by_name`.execute(old.kysely)
    const dropped = { name: '0003-dropped', statements: () => [] }
    await migrate(old.kysely, old.kind, { numbered: [byName, dropped] })
    expect(JSON.stringify(await schemaOf(old))).not.toContain('owners_by_name')
    const fresh = await openWithoutTables()
    await addIndex(fresh)
    expect(JSON.stringify(upgraded)).toContain('owners_by_name')
    expect(await schemaOf(fresh)).toEqual(upgraded)
  })

  test('PostgreSQL: writes continue while a large index is created, and an interrupted index is completed at the next start', async () => {
    const db = await openWithoutTables()
    if (db.kind !== 'postgres') return
    await migrateFirst(db)
    const addOwner = (q: Queries, name: string) => q.insertInto('owners').values({ name }).execute()
    // An index waits for open writing transactions; later writers must not wait for the index.
    let commit = (): void => {}
    let slow: Promise<void> | undefined
    const begun = new Promise<void>((isBegun) => {
      slow = db.transact(async ({ q }) => {
        await addOwner(q, 'slow')
        isBegun()
        await new Promise<void>((resolve) => (commit = resolve))
      })
    })
    await begun
    const making = addIndex(db)
    const interrupted = expect(making).rejects.toThrow()
    const makers = () =>
      sql<{ pid: number }>`select pid from pg_stat_activity
        where datname = current_database() and query like 'create index concurrently%'`.execute(db.kysely)
    await expect.poll(async () => (await makers()).rows.length).toBe(1)
    await addOwner(db.kysely, 'quick')
    // Another process does not wait for the index either.
    await addIndex(db)
    await sql`select pg_terminate_backend(${(await makers()).rows[0]!.pid}::int)`.execute(db.kysely)
    await interrupted
    commit()
    await slow
    const isValid = async () => {
      const { rows } = await sql<{ indisvalid: boolean }>`
        select indisvalid from pg_index where indexrelid = 'owners_by_name'::regclass`.execute(db.kysely)
      return rows[0]?.indisvalid
    }
    expect(await isValid()).toBe(false)
    await addIndex(db)
    expect(await isValid()).toBe(true)
  })
})

test('SQLite: after a kill between any two statements of the first migration, the next start creates the schema', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-migrate-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'larder.sqlite')
  // The files as a kill before each statement would leave them; most are equal.
  const images = new Map<string, string>()
  let points = 0
  const image = (): void => {
    points += 1
    const files = ['', '-wal'].filter((suffix) => existsSync(path + suffix))
    const content = files.map((suffix) => readFileSync(path + suffix, 'latin1')).join('|')
    if (images.has(content)) return
    const copy = join(folder, String(images.size))
    mkdirSync(copy)
    for (const suffix of files) copyFileSync(path + suffix, join(copy, `larder.sqlite${suffix}`))
    images.set(content, join(copy, 'larder.sqlite'))
  }
  const sqlite = new Sqlite(path)
  const prepare = sqlite.prepare.bind(sqlite)
  sqlite.prepare = (statement: string) => {
    image()
    return prepare(statement)
  }
  const db = openDatabase({ url: '', sqlite })
  await db.migrate()
  image()
  const whole = await schemaOf(db)
  await db.close()
  expect(points).toBeGreaterThan(schemaStatements('sqlite').length)
  expect(images.size).toBeGreaterThan(3)
  for (const left of images.values()) {
    const again = openDatabase({ url: `sqlite:${left}` })
    await again.migrate()
    expect(await schemaOf(again)).toEqual(whole)
    await again.close()
  }
})
