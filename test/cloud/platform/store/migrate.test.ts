import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { migrate } from '../../../../cloud/platform/store/migrate.ts'
import { schemaStatements, tables } from '../../../../cloud/platform/store/schema.ts'
import { defineTable, id, text, type DatabaseKind } from '../../../../cloud/platform/store/table.ts'
import { onEachDatabase } from '../../support/database.ts'
import { schemaOf } from '../../support/schema-of.ts'
import { Sqlite } from '../../../../cloud/platform/store/sqlite-driver.ts'

/**
 * What the first migration of the first release made. Nothing has been released: from the first release on, this is the
 * text that `schemaStatements` gave then, kept beside this test.
 */
const releasedStatements = (kind: DatabaseKind): string[] => schemaStatements(kind)

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
  const applied = async ({ kysely }: CloudDatabase) =>
    (await sql<{ name: string }>`select name from kysely_migration order by name`.execute(kysely)).rows

  test('a database of the first release, brought up to date, has the schema that is declared', async () => {
    const db = await openWithoutTables()
    await migrate(db.kysely, db.kind, { first: releasedStatements(db.kind), numbered: [] })
    await db.migrate()
    const upgraded = { schema: await schemaOf(db), migrations: await applied(db) }
    const fresh = await openWithoutTables()
    await fresh.migrate()
    expect(upgraded).toEqual({ schema: await schemaOf(fresh), migrations: await applied(fresh) })
  })

  test('a later migration changes the tables of an older version; new ones are made as declared', async () => {
    const nicknames = {
      name: '0002-nicknames',
      statements: () => ['alter table owners add column nickname text'],
    }
    const declared = { ...tables, owners: defineTable({ id, name: text, nickname: text.nullable }) }
    const old = await openWithoutTables()
    await old.migrate()
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

  test('a migration that fails leaves the schema as it was', async () => {
    const db = await openWithoutTables()
    await db.migrate()
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
})

test('SQLite: killed between any two statements of the first migration, it opens again and makes the schema', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-migrate-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'larder.sqlite')
  // What a kill would leave in the files, before each statement; most leave the same.
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
