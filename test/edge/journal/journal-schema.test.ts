import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JournalRefused, stepDigest } from '../../../edge/journal/journal-schema.ts'
import { migrate, migrations } from '../../../edge/journal/migrations.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { schemaOf } from '../../../edge/journal/table.ts'
import { businessTables } from '../../../edge/journal/tables.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'

/**
 * The digest of each step of the journal's tables. A line never changes. A change of the tables needs a new step, and a
 * new line with the digest that this test prints.
 */
const pinned: Record<string, string> = {
  business: '5af3e1c882ac7397',
  streams: '7d3fa0264e14799e',
}

test('each step of the journal has its pinned digest', () => {
  expect(Object.fromEntries(migrations.map((step) => [step.name, stepDigest(step)]))).toEqual(pinned)
})

/** The columns and indexes of each table. The order of columns does not matter. */
function tablesIn(db: InstanceType<typeof Sqlite>): Record<string, unknown[]> {
  const names = db
    .prepare<[], string>(`SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'journal_schema'`)
    .pluck()
    .all()
  const described = (name: string): unknown[] =>
    db
      .prepare('SELECT name, type, "notnull" AS fixed, pk FROM pragma_table_xinfo(?) ORDER BY name')
      .all(name)
      .concat(
        db
          .prepare(
            `SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY 1`,
          )
          .all(name),
      )
  return Object.fromEntries(names.map((name) => [name, described(name)]))
}

test('a new journal has the declared tables', () => {
  const [made, declared] = [new Sqlite(':memory:'), new Sqlite(':memory:')]
  migrate(made, migrations)
  declared.exec(businessTables.map(schemaOf).join('\n'))
  expect(tablesIn(made)).toMatchObject(tablesIn(declared))
  for (const db of [made, declared]) db.close()
})

const phases = {
  live: ['queued', 'recovering', 'preparing', 'ready', 'collecting'],
  ended: ['completed', 'cancelled', 'timed_out', 'failed', 'unclaimed'],
} as const

test('a later step of a journal with orders in each phase loses no row, and its tables are those of a new journal', () => {
  const [old, fresh] = [new Sqlite(path()), new Sqlite(':memory:')]
  migrate(old, migrations.slice(0, Object.keys(pinned).length), 1)
  const add = old.prepare(
    `INSERT INTO orders (id, order_number, phase, open_when_ready, start_by, bins, lines, received_at, ended_at)
     VALUES (?, ?, ?, 0, 1, '[]', '[]', 1, ?)`,
  )
  const all = [...phases.live, ...phases.ended]
  for (const [index, phase] of all.entries())
    add.run(`order-${index}`, index, phase, index < phases.live.length ? null : 2)
  const rows = () => old.prepare('SELECT id, phase, ended_at FROM orders ORDER BY number').all()
  const before = rows()
  const later = [...migrations, { name: 'nicknames', sql: 'ALTER TABLE orders ADD COLUMN nickname TEXT' }]
  migrate(old, later, 1)
  migrate(fresh, later, 1)
  expect(rows()).toEqual(before)
  expect(before).toHaveLength(10)
  expect(tablesIn(old)).toEqual(tablesIn(fresh))
  for (const db of [old, fresh]) db.close()
  expect(() => open(1)).toThrow(/written by newer software. Install that version again/)
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

test('a journal of a build that stored no digest is refused, with any tables', () => {
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
