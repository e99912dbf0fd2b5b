import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { migrate, SCHEMA_VERSION } from '../../../../cloud/platform/store/migrate.ts'
import { storeProblem } from '../../../../cloud/platform/store/outage.ts'
import { digestOf } from '../../../../cloud/platform/store/schema-check.ts'
import { schemaStatements, tables } from '../../../../cloud/platform/store/schema.ts'
import { defineTable, id, text } from '../../../../cloud/platform/store/table.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { schemaOf } from '../../support/schema-of.ts'
import { releasedStatements } from './released.ts'

/**
 * The digest of the statements that create the schema, for each version and kind of database. A line never changes. A
 * change of a table needs a numbered migration, and a new line with the digests that this test prints.
 */
const pinned: Record<string, Record<CloudDatabase['kind'], string>> = {
  '0001-first': { sqlite: 'd1d8784bed0faaef', postgres: 'c857f11d6041625a' },
  '0002-hub-people': { sqlite: '69fdbab5ff41a9d2', postgres: '2a8df86725cca171' },
  '0003-audit-lists': { sqlite: '97a65ed6ec153c76', postgres: '049ebc002581dbc4' },
  '0004-passkeys': { sqlite: '06bfd3314fe6b303', postgres: '6741586a9cd1bd51' },
  '0005-releases': { sqlite: '920405b229014daa', postgres: '7f317b2beff8a9f5' },
  '0006-morning-mail': { sqlite: '150b8914993a3844', postgres: '97e20f06641a502c' },
  '0007-audit-indexes': { sqlite: 'a9fc372bb5682ae9', postgres: '1950c298b3be421b' },
  '0008-last-readings': { sqlite: 'ed010c24e8bfba9a', postgres: 'c16d8fd425750f19' },
  '0009-confirmed-contacts': { sqlite: 'e9126833c52fc8d6', postgres: 'a54dfdf1b7b65ae8' },
  '0010-disputes': { sqlite: '767c125c270a0c57', postgres: '61c128d9aee22e1b' },
  '0011-authorities': { sqlite: '0293966889edbb25', postgres: '84e22d7a0fd37ac2' },
  '0012-settled-refunds': { sqlite: '0145b06db74bc18b', postgres: '56c41b923e526bbf' },
  '0013-partitions': { sqlite: '0145b06db74bc18b', postgres: '11f8787bf73ac8f6' },
  '0014-next-cell': { sqlite: '019f469118e01f62', postgres: 'b5e52f6326d28c47' },
}

test('the released statements of schema 1 are unchanged', () => {
  expect({
    sqlite: digestOf(releasedStatements('sqlite')),
    postgres: digestOf(releasedStatements('postgres')),
  }).toEqual(pinned['0001-first'])
})

test('the declared schema has the digest that is pinned for its version', () => {
  expect({
    sqlite: digestOf(schemaStatements('sqlite')),
    postgres: digestOf(schemaStatements('postgres')),
  }).toEqual(pinned[SCHEMA_VERSION])
})

onEachDatabase('the comparison of schemas', (open) => {
  async function openWithoutTables(): Promise<CloudDatabase> {
    const db = await open()
    if (db.kind === 'sqlite') {
      const empty = openDatabase({ url: 'sqlite::memory:' })
      onTestFinished(() => empty.close())
      return empty
    }
    await sql`drop schema public cascade`.execute(db.kysely)
    await sql`create schema public`.execute(db.kysely)
    return db
  }
  const run = (db: CloudDatabase, statement: string) => sql.raw(statement).execute(db.kysely)

  /** The operator's message, and whether the database is unchanged. */
  async function refusalOf(
    db: CloudDatabase,
  ): Promise<{ sentence: string | undefined; isUnchanged: boolean }> {
    const before = await schemaOf(db)
    const sentence = await db.migrate().then(
      () => undefined,
      (error: unknown) => storeProblem(error, 'sqlite:/data/larder.sqlite'),
    )
    return { sentence, isUnchanged: JSON.stringify(before) === JSON.stringify(await schemaOf(db)) }
  }

  test('a database of this build is accepted at each start', async () => {
    const db = await openWithoutTables()
    for (let start = 0; start < 3; start += 1) await db.migrate()
  })

  test.each([
    ['a column that was added', 'alter table owners add column nickname text', 'owners'],
    ['a column that was removed', 'alter table hub_sessions drop column health_at', 'hub_sessions'],
    ['a column that was renamed', 'alter table products rename column upc to barcode', 'products'],
    ['an index that was removed', 'drop index alarms_by_age', 'alarms'],
    ['an index that was added', 'create unique index one_name on owners (name)', 'owners'],
    ['a table that was removed', 'drop table installation', 'installation'],
  ])(
    'a schema with %s by hand ends the start with a sentence that names the table',
    async (_, statement, table) => {
      const db = await openWithoutTables()
      await db.migrate()
      await run(db, statement)
      const { sentence, isUnchanged } = await refusalOf(db)
      expect(sentence).toMatch(
        /^DATABASE_URL: \/data\/larder\.sqlite cannot be used: a person has changed its table/,
      )
      expect(sentence).toContain(table)
      expect(isUnchanged).toBe(true)
    },
  )

  test('a table that does not belong to Larder is ignored', async () => {
    const db = await openWithoutTables()
    await db.migrate()
    await run(db, 'create table notes_of_the_operator (note text)')
    await db.migrate()
  })

  test('a database of an older build with the same version number is refused', async () => {
    const db = await openWithoutTables()
    const { alarm_mails: _, ...older } = tables
    const declared = { ...older, owners: defineTable({ id, name: text, nickname: text.nullable }) }
    await migrate(db.kysely, db.kind, { declared, first: schemaStatements(db.kind, declared) })
    const { sentence, isUnchanged } = await refusalOf(db)
    expect(sentence).toMatch(/^DATABASE_URL: .* build \S+ made its tables .* this build needs schema/)
    expect(isUnchanged).toBe(true)
  })

  test('a database of a build that stored no digest is refused', async () => {
    const db = await openWithoutTables()
    await db.migrate()
    await run(db, 'drop table larder_schema')
    const { sentence, isUnchanged } = await refusalOf(db)
    expect(sentence).toMatch(/^DATABASE_URL: .* an older build made its tables/)
    expect(isUnchanged).toBe(true)
  })

  test('an upgrade of a manually changed database is refused before its first step', async () => {
    const db = await openWithoutTables()
    await migrate(db.kysely, db.kind, { numbered: [] })
    await run(db, 'alter table products rename column upc to barcode')
    const before = await schemaOf(db)
    const nicknames = {
      name: '0002-nicknames',
      statements: () => ['alter table owners add column nickname text'],
    }
    await expect(migrate(db.kysely, db.kind, { numbered: [nicknames] })).rejects.toThrow('products')
    expect(await schemaOf(db)).toEqual(before)
  })
})

test('a refused SQLite file is not changed, nor is the log of a killed build beside it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-schema-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const url = `sqlite:${join(folder, 'larder.sqlite')}`
  const db = openDatabase({ url })
  await db.migrate()
  await sql.raw('alter table owners add column nickname text').execute(db.kysely)
  const digests = () =>
    readdirSync(folder)
      .filter((name) => !name.endsWith('-shm'))
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      ])
  // The build that made it still has it open, so the change is only in the log.
  const before = digests()
  expect(before).toHaveLength(2)
  expect(() => openDatabase({ url })).toThrow('owners')
  expect(digests()).toEqual(before)
  await db.close()
})
