import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrate } from '../../../edge/journal/migrations.ts'
import { openStore, StoreFullError, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-store-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const open = (path = ':memory:', checkpoint = noCheckpoint): Store =>
  openStore({ path, checkpoint, log: silentLog })
const put = (store: Store, key: string): void =>
  void store.db.prepare('INSERT INTO meta (key, value) VALUES (?, 1)').run(key)
const keys = (store: Store): unknown[] => store.db.prepare('SELECT key FROM meta ORDER BY key').pluck().all()

test('a transaction commits completely, and its effects run after it in order', () => {
  const store = open()
  const seen: string[] = []
  const result = store.transact(() => {
    store.afterCommit(() => seen.push(`first ${store.db.inTransaction}`))
    put(store, 'a')
    store.transact(() => {
      put(store, 'b')
      store.afterCommit(() => seen.push('second'))
    })
    expect(seen).toEqual([])
    return 7
  })
  expect(result).toBe(7)
  expect(seen).toEqual(['first false', 'second'])
  expect(keys(store)).toEqual(['a', 'b'])
})

test('an error rolls everything back, effects included, and is thrown on', () => {
  const store = open()
  const seen: string[] = []
  expect(() =>
    store.transact(() => {
      put(store, 'a')
      store.afterCommit(() => seen.push('never'))
      store.transact(() => {
        throw new Error('broken')
      })
    }),
  ).toThrow('broken')
  store.transact(() => put(store, 'b'))
  expect(seen).toEqual([])
  expect(keys(store)).toEqual(['b'])
})

test('an effect may run a transaction, and its effects run after the pending ones', () => {
  const store = open()
  const seen: string[] = []
  store.transact(() => {
    store.afterCommit(() => {
      store.transact(() => store.afterCommit(() => seen.push('third')))
      seen.push('first')
    })
    store.afterCommit(() => seen.push('second'))
  })
  expect(seen).toEqual(['first', 'second', 'third'])
})

test('an effect outside of a transaction runs at once', () => {
  const seen: string[] = []
  open().afterCommit(() => seen.push('now'))
  expect(seen).toEqual(['now'])
})

test('a savepoint rolls back only its own rows and effects', () => {
  const store = open()
  const seen: string[] = []
  store.transact(() => {
    put(store, 'a')
    store.afterCommit(() => seen.push('a'))
    expect(() =>
      store.savepoint(() => {
        put(store, 'b')
        store.afterCommit(() => seen.push('b'))
        throw new Error('broken')
      }),
    ).toThrow('broken')
    store.savepoint(() => put(store, 'c'))
  })
  expect(keys(store)).toEqual(['a', 'c'])
  expect(seen).toEqual(['a'])
})

test.each([
  ['journal.before-commit', []],
  ['journal.after-commit', ['a']],
])('a crash at %s leaves the rows of that moment, and runs no effect', (at, expected) => {
  const database = new Sqlite(':memory:')
  let armed = false
  const checkpoint = (point: string): void => {
    if (armed && point === at) throw new Error('crash')
  }
  const seen: string[] = []
  const store = openStore({ path: ':memory:', database, checkpoint, log: silentLog })
  armed = true
  expect(() =>
    store.transact(() => {
      put(store, 'a')
      store.afterCommit(() => seen.push('effect'))
    }),
  ).toThrow('crash')
  store.close()
  expect(database.inTransaction).toBe(false)
  expect(keys(openStore({ path: ':memory:', database, checkpoint: noCheckpoint, log: silentLog }))).toEqual(
    expected,
  )
  expect(seen).toEqual([])
})

test('a file keeps committed data, with every commit flushed', () => {
  const path = join(folder, 'sub', 'hub.sqlite')
  const store = open(path)
  expect(store.db.pragma('synchronous', { simple: true })).toBe(2)
  expect(store.db.pragma('journal_mode', { simple: true })).toBe('wal')
  store.transact(() => put(store, 'a'))
  store.close()
  expect(keys(open(path))).toEqual(['a'])
})

test('a damaged file is set aside, and a new journal started', () => {
  const path = join(folder, 'hub.sqlite')
  const store = open(path)
  store.transact(() => put(store, 'a'))
  store.close()
  writeFileSync(path, 'no database at all, although it lies in its place'.repeat(100))
  const fresh = open(path)
  expect(keys(fresh)).toEqual([])
  expect(readFileSync(`${path}.damaged-1`, 'utf8')).toContain('no database')
})

test('the ballast is released on a full disk, and restored when there is space', () => {
  const path = join(folder, 'hub.sqlite')
  const store = open(path)
  expect(statSync(`${path}.ballast`).size).toBe(1024 * 1024)
  const pages = store.db.pragma('page_count', { simple: true }) as number
  store.db.pragma(`max_page_count = ${pages}`)
  expect(() =>
    store.transact(() => {
      for (let index = 0; index < 10_000; index++) put(store, `key-${index}`)
    }),
  ).toThrow(StoreFullError)
  expect(store.isFull()).toBe(true)
  expect(() => statSync(`${path}.ballast`)).toThrow(/ENOENT/)
  store.relieve()
  expect(store.isFull()).toBe(false)
  expect(statSync(`${path}.ballast`).size).toBe(1024 * 1024)
})

test('migrations are applied once each, in order, completely or not at all', () => {
  const db = new Sqlite(':memory:')
  const first = { name: 'first', sql: 'CREATE TABLE a (x)' }
  const second = { name: 'second', sql: 'CREATE TABLE b (x); INSERT INTO b VALUES (1)' }
  migrate(db, [first])
  migrate(db, [first, second])
  migrate(db, [first, second])
  expect(db.prepare('SELECT count(*) FROM b').pluck().get()).toBe(1)
  const broken = { name: 'broken', sql: 'CREATE TABLE c (x); NONSENSE' }
  expect(() => migrate(db, [first, second, broken])).toThrow(/syntax/)
  expect(db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'c'").get()).toBeUndefined()
  expect(() => migrate(db, [first])).toThrow(/newer software/)
})

test('a journal locked by another process is not writable, but readable', () => {
  const path = join(folder, 'hub.sqlite')
  const store = open(path)
  store.db.pragma('busy_timeout = 1')
  expect(store.isWritable()).toBe(true)
  const other = new Sqlite(path)
  other.exec('BEGIN IMMEDIATE')
  expect(keys(store)).toEqual([])
  expect(() => store.isWritable()).toThrow(/locked/)
  other.exec('ROLLBACK')
  expect(store.isWritable()).toBe(true)
  store.transact(() => expect(store.isWritable()).toBe(true))
})
