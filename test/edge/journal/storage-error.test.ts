import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { storageReasonOf } from '../../../edge/journal/storage-error.ts'
import { openStore, StoreFullError, type Store } from '../../../edge/journal/store.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { storageReasons, storageSentence, storageText } from '../../../protocol/model/storage.ts'

const sqlite = (code: string): Error => new Sqlite.SqliteError('as SQLite says', code)
const system = (code: string, syscall = 'write'): Error =>
  Object.assign(new Error(`${code}: as the system says`), { code, syscall, errno: -1 })

test.each([
  ['SQLITE_FULL', 'full'],
  ['SQLITE_IOERR_SHMSIZE', 'full'],
  ['SQLITE_READONLY', 'read_only'],
  ['SQLITE_READONLY_DBMOVED', 'read_only'],
  ['SQLITE_READONLY_DIRECTORY', 'read_only'],
  ['SQLITE_IOERR', 'io_error'],
  ['SQLITE_IOERR_READ', 'io_error'],
  ['SQLITE_IOERR_FSYNC', 'io_error'],
  ['SQLITE_IOERR_SHMMAP', 'io_error'],
  ['SQLITE_BUSY', 'locked'],
  ['SQLITE_BUSY_SNAPSHOT', 'locked'],
  ['SQLITE_LOCKED', 'locked'],
  ['SQLITE_PROTOCOL', 'locked'],
  ['SQLITE_CANTOPEN', 'cannot_open'],
  ['SQLITE_CANTOPEN_ISDIR', 'cannot_open'],
  ['SQLITE_CORRUPT', 'damaged'],
  ['SQLITE_CORRUPT_INDEX', 'damaged'],
  ['SQLITE_NOTADB', 'damaged'],
])('the storage failure %s of SQLite has the reason %s', (code, reason) => {
  expect(storageReasonOf(sqlite(code))).toBe(reason)
})

test.each([
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EROFS', 'read_only'],
  ['EIO', 'io_error'],
  ['ENXIO', 'io_error'],
  ['ESTALE', 'io_error'],
  ['EACCES', 'cannot_open'],
  ['EMFILE', 'cannot_open'],
  ['EUCLEAN', 'damaged'],
])('the error %s of the operating system has the reason %s', (code, reason) => {
  expect(storageReasonOf(system(code))).toBe(reason)
})

test('errors of a statement, of the network and of the program are not storage failures', () => {
  for (const error of [
    sqlite('SQLITE_CONSTRAINT_UNIQUE'),
    sqlite('SQLITE_ERROR'),
    system('ECONNREFUSED', 'connect'),
    system('EADDRINUSE', 'listen'),
    Object.assign(new Error('no system call'), { code: 'EIO' }),
    new TypeError('a defect'),
    'text',
    undefined,
  ])
    expect(storageReasonOf(error), String(error)).toBeUndefined()
})

test('every reason has a sentence with the setting, the path and a remedy', () => {
  for (const reason of [...storageReasons, 'a reason of a newer hub']) {
    const sentence = storageSentence({ reason, setting: 'STORE', path: '/data/hub.sqlite', detail: 'why' })
    expect(sentence).toMatch(/^STORE: \/data\/hub\.sqlite \w.+ \(why\)$/)
    expect(storageText(reason).remedy).toMatch(/\.$/)
  }
})

/** A store on a file; `card` controls the failures of its card. */
function openOnCard() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-card-'))
  const card = { fails: undefined as string | undefined }
  const lines: [level: string, message: string][] = []
  const at = (level: string) => (_: object, message: string) => void lines.push([level, message])
  const log: Log = { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error') }
  const store = openStore({
    path: join(folder, 'hub.sqlite'),
    log,
    checkpoint(point) {
      if (card.fails !== undefined && point === 'journal.before-commit') throw sqlite(card.fails)
    },
  })
  onTestFinished(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  return { store, card, lines }
}

const put = (store: Store, key: string): unknown =>
  store.transact(() => store.db.prepare('INSERT INTO meta (key, value) VALUES (?, 1)').run(key).changes)
const keys = ({ db }: Store): unknown[] => db.prepare('SELECT key FROM meta').pluck().all()

test.each([
  ['SQLITE_READONLY', 'read_only'],
  ['SQLITE_IOERR_WRITE', 'io_error'],
  ['SQLITE_CORRUPT', 'damaged'],
  ['SQLITE_CANTOPEN', 'cannot_open'],
])('a file that fails with %s is lost: it is reported once, and not used again', (code, reason) => {
  const { store, card, lines } = openOnCard()
  const lost: string[] = []
  store.onLost((error) => lost.push(error.reason))
  card.fails = code
  for (let time = 0; time < 20; time += 1) expect(() => put(store, 'a')).toThrow('as SQLite says')
  card.fails = undefined
  expect(() => put(store, 'b')).toThrow('as SQLite says')
  expect(lost).toEqual([reason])
  expect(store.failure()).toMatchObject({ reason, setting: 'STORE', detail: 'as SQLite says' })
  expect(lines).toHaveLength(1)
  expect(keys(store)).toEqual([])
})

test('a lock ends: the journal works again with the first successful transaction', () => {
  const { store, card, lines } = openOnCard()
  const lost: string[] = []
  store.onLost((error) => lost.push(error.reason))
  card.fails = 'SQLITE_BUSY'
  for (let time = 0; time < 20; time += 1) expect(() => put(store, 'a')).toThrow('as SQLite says')
  expect(store.failure()).toMatchObject({ reason: 'locked' })
  card.fails = undefined
  put(store, 'b')
  expect([lost, store.failure(), keys(store)]).toEqual([[], undefined, ['b']])
  expect(lines.map(([level]) => level)).toEqual(['error', 'info'])
})

test('a foreign transaction makes the journal wait once, and then not again while it lasts', () => {
  const { store } = openOnCard()
  const other = new Sqlite(store.db.name)
  other.exec('BEGIN IMMEDIATE')
  const timed = (): number => {
    const begun = performance.now()
    expect(() => put(store, 'a')).toThrow(/locked/)
    return performance.now() - begun
  }
  expect(timed()).toBeGreaterThan(500)
  // A busy machine may delay one of them.
  expect(Math.min(timed(), timed(), timed())).toBeLessThan(400)
  other.exec('ROLLBACK')
  other.close()
  put(store, 'b')
  expect(store.failure()).toBeUndefined()
})

test('an exhausted quota is a full disk: the ballast is released, and restored later', () => {
  const { store, card } = openOnCard()
  card.fails = 'SQLITE_FULL'
  expect(() => put(store, 'a')).toThrow(StoreFullError)
  expect([store.isFull(), store.failure()?.reason]).toEqual([true, 'full'])
  card.fails = undefined
  put(store, 'b')
  expect(store.isFull()).toBe(true)
  store.relieve()
  expect([store.isFull(), store.failure()]).toEqual([false, undefined])
})
