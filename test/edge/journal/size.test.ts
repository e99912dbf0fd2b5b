import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JournalOutbox } from '../../../edge/journal/outbox.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'

const MB = 1024 * 1024
let folder: string
const opened: Store[] = []
let warnings: string[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-size-'))
  warnings = []
})
afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  rmSync(folder, { recursive: true })
})
const path = (): string => join(folder, 'hub.sqlite')
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (_, message) => void warnings.push(message),
  error: () => {},
}
function open(maxBytes = 8 * MB): Store {
  const store = openStore({ path: path(), maxBytes, checkpoint: noCheckpoint, log })
  opened.push(store)
  return store
}
/** Writes about a megabyte of rows. */
function grow(store: Store, name: string): void {
  store.transact(() => {
    const put = store.db.prepare('INSERT INTO meta (key, value) VALUES (?, ?)')
    for (let row = 0; row < 1000; row += 1) put.run(`${name}-${row}`, 'x'.repeat(900))
  })
}
const checkpoint = (store: Store): unknown => store.db.pragma('wal_checkpoint(TRUNCATE)')

test('a growing journal warns before its limit, stops sales at the limit, and sells again when it has shrunk', () => {
  const store = open()
  const outbox = new JournalOutbox(store, virtualRuntime())
  for (let part = 0; part < 3; part += 1) grow(store, `part-${part}`)
  checkpoint(store)
  store.relieve()
  expect([store.failure(), warnings]).toEqual([undefined, []])
  for (let part = 3; part < 7; part += 1) grow(store, `part-${part}`)
  checkpoint(store)
  store.relieve()
  store.relieve()
  expect(store.failure()).toBeUndefined()
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('STORE_MAX_MB')
  for (let part = 7; part < 10; part += 1) grow(store, `part-${part}`)
  store.relieve()
  expect(store.failure()).toMatchObject({ reason: 'full', detail: expect.stringContaining('STORE_MAX_MB') })
  expect(outbox.isLedgerFull()).toBe(true)
  // Reports can still be written.
  store.transact(() => store.db.exec("INSERT INTO meta (key, value) VALUES ('a sale', 1)"))

  store.transact(() => store.db.exec("DELETE FROM meta WHERE key LIKE 'part-%'"))
  checkpoint(store)
  for (let look = 0; look < 40; look += 1) store.relieve()
  checkpoint(store)
  expect([store.failure(), outbox.isLedgerFull()]).toEqual([undefined, false])
  expect(statSync(path()).size).toBeLessThan(2 * MB)
})

test('the log that a reader keeps from restarting counts: the hub stops sales before the card is full', () => {
  const store = open()
  const reader = new Sqlite(path(), { readonly: true })
  reader.exec('BEGIN; SELECT count(*) FROM meta')
  for (let time = 0; time < 12; time += 1) {
    grow(store, 'same')
    store.transact(() => store.db.exec("DELETE FROM meta WHERE key LIKE 'same-%'"))
  }
  store.relieve()
  expect(store.failure()).toMatchObject({ reason: 'full' })
  reader.close()
  grow(store, 'same')
  checkpoint(store)
  store.relieve()
  expect(store.failure()).toBeUndefined()
  expect(statSync(`${path()}-wal`).size).toBeLessThan(9 * MB)
})

test('the newest damaged journals are kept', () => {
  for (let time = 1; time <= 6; time += 1) {
    writeFileSync(path(), `no database, number ${time} `.repeat(200))
    open().close()
    opened.pop()
    rmSync(path(), { force: true })
  }
  const kept = readdirSync(folder).filter((name) => /damaged-\d+$/.test(name))
  expect(kept.toSorted()).toEqual(['hub.sqlite.damaged-4', 'hub.sqlite.damaged-5', 'hub.sqlite.damaged-6'])
})
