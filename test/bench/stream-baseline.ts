import type Database from 'better-sqlite3'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createOutbox } from '../../edge/journal/outbox.ts'
import { openStore } from '../../edge/journal/store.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { stockEntry } from './stream-entries.ts'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'

const open = (path: string): Database.Database => {
  const db = new Sqlite(path)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  return db
}

/**
 * Moves the same entries between two files with prepared statements: reads a batch, inserts it there and
 * commits, deletes it here and commits. No network, no second process, no validation. Returns milliseconds.
 */
export function moveBare(folder: string, count: number, batch: number): number {
  const runtime = systemRuntime()
  const source = open(join(folder, 'source.sqlite'))
  const target = open(join(folder, 'target.sqlite'))
  source.exec('CREATE TABLE entries (seq INTEGER PRIMARY KEY, tag INTEGER, body TEXT)')
  target.exec('CREATE TABLE entries (seq INTEGER PRIMARY KEY, tag INTEGER, body TEXT)')
  const add = 'INSERT INTO entries VALUES (?, ?, ?)'
  const fill = source.prepare(add)
  source.transaction(() => {
    for (let n = 0; n < count; n++) fill.run(n + 1, n, JSON.stringify(stockEntry(n, runtime)))
  })()

  const read = source.prepare('SELECT seq, tag, body FROM entries ORDER BY seq LIMIT ?').raw()
  const insert = target.prepare(add)
  const remove = source.prepare('DELETE FROM entries WHERE seq <= ?')
  const store = target.transaction((rows: [number, number, string][]) => {
    for (const row of rows) insert.run(...row)
  })
  const started = performance.now()
  for (;;) {
    const rows = read.all(batch) as [number, number, string][]
    if (rows.length === 0) break
    store.immediate(rows)
    remove.run(rows.at(-1)![0])
  }
  const elapsed = performance.now() - started
  source.close()
  target.close()
  return elapsed
}

/** Milliseconds to append `count` entries to a hub's ledger, each in its own durable commit. */
export function appendEach(folder: string, count: number): number {
  const runtime = systemRuntime()
  const store = openStore({ path: join(folder, 'append.sqlite'), checkpoint: noCheckpoint, log: silentLog })
  const outbox = createOutbox(store, runtime)
  const started = performance.now()
  for (let n = 0; n < count; n++) outbox.append('ledger', stockEntry(n, runtime))
  const elapsed = performance.now() - started
  store.close()
  return elapsed
}
