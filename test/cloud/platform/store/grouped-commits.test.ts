import { sql } from 'kysely'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import type { SqliteOptions } from '../../../../cloud/platform/store/sqlite.ts'
import { Sqlite } from '../../../../cloud/platform/store/sqlite-driver.ts'
import { statement } from '../../../../cloud/platform/store/statement.ts'

let folder: string
let run: string[]
let db: CloudDatabase
/** Another process, which sees committed data. */
let other: InstanceType<typeof Sqlite>

async function open(options: SqliteOptions = {}): Promise<void> {
  const file = join(folder, 'larder.sqlite')
  const sqlite = new Sqlite(file, { verbose: (text) => void run.push(String(text)) })
  db = openDatabase({ url: `sqlite:${file}`, sqlite, ...options })
  await db.migrate()
  other = new Sqlite(file, { readonly: true })
  run.length = 0
}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-grouped-'))
  run = []
})
afterEach(async () => {
  other.close()
  await db.close()
  rmSync(folder, { recursive: true })
})

const add = (name: string, then?: () => Promise<void> | void) =>
  db.transact(async (tx) => {
    await tx.q.insertInto('owners').values({ name }).execute()
    await then?.()
    return name
  })
const committed = () => other.prepare('select name from owners order by id').pluck().all()
const commits = () => run.filter((text) => text === 'commit').length
const letters = Array.from('abcdefghij')

test('simultaneous transactions are committed together, and none ends before the commit', async () => {
  await open()
  const seen: unknown[] = []
  await Promise.all(letters.map((name) => add(name).then(() => seen.push(committed()))))
  expect(commits()).toBe(1)
  expect(seen).toEqual(letters.map(() => letters))
})

test('one commit contains at most the configured number of transactions', async () => {
  await open({ grouped: 4 })
  await Promise.all(letters.map((name) => add(name)))
  expect([commits(), committed()]).toEqual([3, letters])
  run.length = 0
  for (const name of letters) await add(name)
  expect(commits()).toBe(letters.length)
})

test('a failed transaction in a group is rolled back alone', async () => {
  await open()
  const fail = () => Promise.reject(new Error('no'))
  for (const failing of letters) {
    await db.kysely.deleteFrom('owners').execute()
    const ends = await Promise.allSettled(
      letters.map((name) => add(name, name === failing ? fail : undefined)),
    )
    expect(ends.flatMap(({ status }, index) => (status === 'rejected' ? letters[index] : []))).toEqual([
      failing,
    ])
    expect(committed()).toEqual(letters.filter((name) => name !== failing))
  }
})

test('data read outside of a transaction is durable', async () => {
  await open()
  const seen: unknown[] = []
  const read = async () => {
    const rows = await db.kysely.selectFrom('owners').select('name').orderBy('id').execute()
    seen.push([rows.map(({ name }) => name), committed()])
  }
  await Promise.all([add('a'), add('b'), read(), add('c')])
  expect(seen).toEqual([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  ])
})

test('a rollback of the whole group fails all its transactions, and the next one succeeds', async () => {
  await open()
  // Like a full disk: SQLite ends the transaction together with the statement.
  const undo = () =>
    db.transact(
      async (tx) =>
        void (await sql`insert or rollback into owners (id, name) select id, name from owners`.execute(tx.q)),
    )
  const ends = await Promise.allSettled([add('a'), add('b'), undo(), add('c')])
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled'])
  for (const end of ends.slice(0, 3))
    expect(end).toMatchObject({ reason: { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' } })
  expect(committed()).toEqual(['c'])
})

test('a single write that fails in a group is undone alone', async () => {
  await open()
  await add('first')
  const twice = () =>
    db.kysely
      .insertInto('owners')
      .values([
        { id: 100, name: 'x' },
        { id: 1, name: 'y' },
      ])
      .execute()
  const ends = await Promise.allSettled([add('a'), twice(), add('b')])
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(committed()).toEqual(['first', 'a', 'b'])
})

test('a single write that rolls back the whole group fails it, and the next write succeeds', async () => {
  await open()
  await add('first')
  const undo = () => db.kysely.insertInto('owners').orRollback().values({ id: 1, name: 'y' }).execute()
  const ends = await Promise.allSettled([add('a'), undo(), add('b')])
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
  expect(committed()).toEqual(['first', 'b'])
})

test('a rollback of the whole group also discards simultaneous statements', async () => {
  await open()
  await add('a')
  const insert = statement((q, { name }: { name: string }) => q.insertInto('owners').values({ name }))
  const undo = statement(() => sql`insert or rollback into owners (id, name) select id, name from owners`)
  const undone = db.transact(({ q }) => Promise.all([undo(q, {}), insert(q, { name: 'b' })]))
  await expect(undone).rejects.toMatchObject({ code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })
  expect(committed()).toEqual(['a'])
})

test('a failed commit fails all transactions of the group', async () => {
  await open()
  await sql`create table guarded (owner integer references owners (id) deferrable initially deferred)`.execute(
    db.kysely,
  )
  const dangle = () =>
    db.transact(async (tx) => void (await sql`insert into guarded values (99)`.execute(tx.q)))
  const ends = await Promise.allSettled([add('a'), dangle(), add('b')])
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(await add('c')).toBe('c')
  expect(committed()).toEqual(['c'])
})

test('after a failed commit that cannot be rolled back at once, the next transaction succeeds', async () => {
  await open()
  const file = join(folder, 'larder.sqlite')
  await db.close()
  const sqlite = new Sqlite(file)
  const prepare = sqlite.prepare.bind(sqlite)
  const failing = new Set(['commit', 'rollback'])
  Object.assign(sqlite, {
    prepare(text: string) {
      if (failing.delete(text)) throw new Error(`no ${text}`)
      return prepare(text)
    },
  })
  db = openDatabase({ url: `sqlite:${file}`, sqlite })
  const ends = await Promise.allSettled([add('a'), add('b')])
  expect(ends).toMatchObject([{ reason: { message: 'no commit' } }, { reason: { message: 'no commit' } }])
  await db.kysely.insertInto('owners').values({ name: 'c' }).execute()
  expect(committed()).toEqual(['c'])
  expect(await add('d')).toBe('d')
  expect(committed()).toEqual(['c', 'd'])
})

test('ended transactions of a file are durable, and other transactions are invisible', async () => {
  await open()
  await db.close()
  db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}`, grouped: 3, isBusy: true })
  const names = () => db.kysely.selectFrom('owners').select('name').orderBy('id').execute()
  const ends: string[] = []
  const work = Array.from({ length: 60 }, async (_, n) => {
    // Requests arrive during others, and between them.
    for (let turn = 0; turn < n % 7; turn++) await new Promise((resolve) => setImmediate(resolve))
    const name = `owner ${n}`
    if (n % 4 === 0) await db.kysely.insertInto('owners').values({ name }).execute()
    else if (n % 4 === 1) await expect(add(name, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    else
      await add(name, async () => {
        expect(committed()).not.toContain(name)
        await new Promise((resolve) => setImmediate(resolve))
      })
    if (n % 4 !== 1) ends.push(name)
    expect(committed()).toEqual(expect.arrayContaining(ends))
    expect((await names()).map((row) => row.name)).toEqual(expect.arrayContaining(ends))
  })
  await Promise.all(work)
  expect(new Set(committed())).toEqual(new Set(ends))
  expect(ends).toHaveLength(45)
})

test('the log is written to the database after a number of pages, and restarted', async () => {
  const PAGE_BYTES = 4096
  const logPages = () => statSync(join(folder, 'larder.sqlite-wal')).size / PAGE_BYTES
  await open({ checkpointPages: 20 })
  for (let count = 0; count < 40; count += 1) await add(`${'x'.repeat(PAGE_BYTES)}${count}`)
  const atFirst = logPages()
  for (let count = 0; count < 200; count += 1) await add(`${'y'.repeat(PAGE_BYTES)}${count}`)
  expect(logPages()).toBe(atFirst)
})
