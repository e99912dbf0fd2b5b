import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Facts } from '../../../edge/journal/facts.ts'
import { loadState } from '../../../edge/journal/state.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { storedConfig, StoreError } from '../../../edge/management/stored-config.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { HubConfig } from '../../../protocol/mqtt/cloud-entries.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'

const config: HubConfig = {
  accepting_orders: false,
  disabled_bins: [4],
  disabled_fridges: [2],
  confirmed_fridges: [],
  prepare_timeout_ms: 1000,
  unclaimed_timeout_ms: 2000,
  people: [],
}

let folder: string
let path: string
let store: Store
let facts: Facts

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-stored-'))
  path = join(folder, 'hub.sqlite')
  store = openStore({ path, checkpoint: noCheckpoint, log: silentLog })
  facts = loadState(store, []).facts
})
afterEach(() => {
  store.close()
  rmSync(folder, { recursive: true })
})

const heard = (value: HubConfig) => store.transact(() => facts.setConfig(value))

describe('the stored configuration', () => {
  test('a bin can be disabled and enabled in the stored configuration, and nothing else changes', () => {
    heard(config)
    const stored = storedConfig(path)
    expect(stored.disabledBins()).toEqual([4])
    expect(stored.setEnabled(2, false)).toEqual([2, 4])
    expect(loadState(store, []).facts.config()).toEqual({ ...config, disabled_bins: [2, 4] })
    expect(stored.setEnabled(2, false)).toEqual([2, 4])
    expect(stored.setEnabled(4, true)).toEqual([2])
    expect(stored.setEnabled(4, true)).toEqual([2])
    expect(loadState(store, []).facts.config()).toEqual({ ...config, disabled_bins: [2] })
    expect(stored.disabledBins()).toEqual([2])
  })

  test('the next life of the hub uses the stored configuration', () => {
    heard(config)
    store.close()
    storedConfig(path).setEnabled(1, false)
    store = openStore({ path, checkpoint: noCheckpoint, log: silentLog })
    expect(loadState(store, []).facts.config()?.disabled_bins).toEqual([1, 4])
  })

  test('the stored configuration can be read during the hub’s write lock, and a write is refused in words', () => {
    heard(config)
    const other = new Sqlite(path)
    other.exec('BEGIN IMMEDIATE')
    expect(storedConfig(path).disabledBins()).toEqual([4])
    expect(() => storedConfig(path).setEnabled(1, false)).toThrow(/cannot be used: database is locked/)
    other.exec('ROLLBACK')
    other.close()
    expect(storedConfig(path).disabledBins()).toEqual([4])
  })

  test('the stored configuration is empty before the cloud’s first message, and cannot be changed', () => {
    expect(storedConfig(path).disabledBins()).toBeNull()
    expect(() => storedConfig(path).setEnabled(1, false)).toThrow(/the cloud has never sent one/)
  })

  test('a missing, a damaged and a newer journal are refused and left unchanged', () => {
    const missing = join(folder, 'none.sqlite')
    expect(() => storedConfig(missing).setEnabled(1, true)).toThrow(StoreError)
    expect(() => storedConfig(missing).disabledBins()).toThrow(/no journal yet/)
    const damaged = join(folder, 'damaged.sqlite')
    writeFileSync(damaged, 'this is no database, and is longer than a header would be'.repeat(20))
    expect(() => storedConfig(damaged).setEnabled(1, true)).toThrow(StoreError)
    heard(config)
    store.db.pragma('user_version = 1000')
    expect(() => storedConfig(path).setEnabled(1, false)).toThrow(/version 1000/)
    expect(facts.config()).toEqual(config)
  })

  test('a configuration of another shape is refused and left alone', () => {
    store.db.prepare("INSERT INTO meta (key, value) VALUES ('config', ?)").run('{"disabled_bins":"all"}')
    expect(() => storedConfig(path).setEnabled(1, false)).toThrow(/not understood/)
    expect(store.db.prepare("SELECT value FROM meta WHERE key = 'config'").pluck().get()).toBe(
      '{"disabled_bins":"all"}',
    )
  })
})
