import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JournalRefused, stepDigest } from '../../../edge/journal/journal-schema.ts'
import { migrations } from '../../../edge/journal/migrations.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'

/**
 * The digest of each step of the journal's tables. No version has been released: after a change of a step,
 * copy the digest that this test prints. From the first release on, a change needs a new step, and a released
 * line never changes.
 */
const pinned: Record<string, string> = {
  business: '5af3e1c882ac7397',
  streams: '7d3fa0264e14799e',
}

test('each step of the journal has its pinned digest', () => {
  expect(Object.fromEntries(migrations.map((step) => [step.name, stepDigest(step)]))).toEqual(pinned)
})

test('comments and spaces of a step do not change its digest', () => {
  const step = { name: 'a', sql: 'CREATE TABLE a (x) -- why\n  STRICT;' }
  expect(stepDigest({ ...step, sql: 'CREATE TABLE a (x) STRICT;' })).toBe(stepDigest(step))
  expect(stepDigest({ ...step, sql: 'CREATE TABLE a (y) STRICT;' })).not.toBe(stepDigest(step))
})

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-schema-'))))
afterEach(() => rmSync(folder, { recursive: true }))
const path = (): string => join(folder, 'hub.sqlite')
const open = (hubId?: number): Store =>
  openStore({
    path: path(),
    ...(hubId !== undefined && { hubId }),
    checkpoint: noCheckpoint,
    log: silentLog,
  })
/** Content of the folder, except SQLite's index and an empty log, which each reader may create again. */
const files = (): string[][] =>
  readdirSync(folder)
    .filter((name) => !name.endsWith('-shm') && statSync(join(folder, name)).size > 0)
    .map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ])

test('another hub’s journal is refused by its number, and is not changed by a byte', () => {
  const own = open(1)
  own.db.prepare("INSERT INTO meta (key, value) VALUES ('a', 'b')").run()
  // The other hub lost power: its last writes are in SQLite's log.
  const before = files()
  expect(() => open(2)).toThrow('it is the journal of hub 1, and HARDWARE describes hub 2')
  expect(() => open(2)).toThrow(expect.objectContaining({ name: 'StorageError', reason: 'foreign_journal' }))
  expect(files()).toEqual(before)
  own.close()
  open(1).close()
})

test.each([
  ['a column that was added', 'ALTER TABLE orders ADD COLUMN note TEXT', 'orders'],
  ['a column that was removed', 'ALTER TABLE alarms DROP COLUMN detail', 'alarms'],
  ['an index that was removed', 'DROP INDEX stock_ledger_counts', 'stock_ledger'],
  ['a table that was removed', 'DROP TABLE held_entries', 'held_entries'],
])('a journal with %s by hand ends the start, and is not changed by a byte', (_, statement, table) => {
  open(1).close()
  const hand = new Sqlite(path())
  hand.exec(statement)
  hand.close()
  const before = files()
  expect(() => open(1)).toThrow(JournalRefused)
  expect(() => open(1)).toThrow(table)
  expect(files()).toEqual(before)
})

test('a journal whose build stored no digest is refused, with any tables', () => {
  open(1).close()
  const hand = new Sqlite(path())
  hand.exec('DROP TABLE journal_schema')
  hand.close()
  const before = files()
  expect(() => open(1)).toThrow('an older build made its tables')
  expect(files()).toEqual(before)
})

test('a journal of a build with a different step is refused with the name of that build', () => {
  open(1).close()
  const hand = new Sqlite(path())
  hand.exec(
    `UPDATE journal_schema SET schema = json_set(schema, '$.steps[0]', 'another', '$.software', '0.0.9')`,
  )
  hand.close()
  expect(() => open(1)).toThrow('build 0.0.9 made its tables')
})

test('a journal of newer software is refused with the remedy', () => {
  open(1).close()
  const hand = new Sqlite(path())
  hand.pragma(`user_version = ${migrations.length + 1}`)
  hand.close()
  expect(() => open(1)).toThrow(/written by newer software. Install that version again/)
})

test('a table that does not belong to the hub is ignored', () => {
  const store = open(1)
  store.db.exec('CREATE TABLE notes_of_a_technician (note TEXT)')
  store.close()
  open(1).close()
})
