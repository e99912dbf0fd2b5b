import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { loadState } from '../../../edge/journal/state.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { missing, service } from '../../support/services.ts'

let disk: string
const opened: Store[] = []
beforeEach(() => {
  disk = mkdtempSync(join(tmpdir(), 'larder-small-'))
  if (missing('tmpfs') === undefined)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'larder-test', disk])
})
afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  if (missing('tmpfs') === undefined) execFileSync('umount', ['-l', disk])
  rmSync(disk, { recursive: true })
})

function open(): Store {
  const store = openStore({ path: join(disk, 'hub.sqlite'), checkpoint: noCheckpoint, log: silentLog })
  opened.push(store)
  return store
}

/** Writes until no byte fits, nor an entry into the journal's log, which `reader` keeps from restarting. */
function fillUp(store: Store, reader: Store): void {
  reader.db.exec('BEGIN; SELECT count(*) FROM meta')
  const file = openSync(join(disk, 'waste'), 'a')
  for (const bytes of [65_536, 4096, 1])
    try {
      for (;;) writeSync(file, Buffer.alloc(bytes, bytes))
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' })
    }
  closeSync(file)
  const put = store.db.prepare('INSERT INTO meta (key, value) VALUES (?, 1)')
  const fillLog = (): void => {
    for (let number = 0; ; number++) put.run(`waste-${number}`)
  }
  expect(fillLog).toThrow(/disk is full/)
}

service('tmpfs')(
  'an update without space for its tables on a full disk gets the space of the ballast',
  () => {
    const store = open()
    const reader = open()
    // The table as the former version left it.
    store.db.exec(
      `DROP TABLE stream_positions; DROP TABLE outbox_ledger; DROP TABLE outbox_telemetry; DROP TABLE ledger_epochs;
     DROP TABLE inbox_position; DROP TABLE inbox_left_epochs; PRAGMA user_version = 1`,
    )
    fillUp(store, reader)
    store.close()
    const updated = open()
    expect(updated.db.pragma('user_version', { simple: true })).toBe(2)
    expect(updated.isFull()).toBe(true)
    expect(existsSync(join(disk, 'hub.sqlite.ballast'))).toBe(false)
  },
)

service('tmpfs')('a bin that is new to the hub needs no space at the start', () => {
  const store = open()
  loadState(store, [1])
  const reader = open()
  fillUp(store, reader)
  store.close()
  const full = open()
  const { bins } = loadState(full, [2, 1])
  expect(bins.all()).toMatchObject([
    { number: 1, order_id: null, failures: 0 },
    { number: 2, order_id: null, failures: 0 },
  ])
  rmSync(join(disk, 'waste'))
  full.transact(() => bins.change(2, { failures: 1, fault: 'open_door:timeout' }))
  expect(loadState(full, [1, 2]).bins.all()[1]).toMatchObject({ number: 2, failures: 1 })
})
