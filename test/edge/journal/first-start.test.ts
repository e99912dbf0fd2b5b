import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createInbox } from '../../../edge/journal/inbox.ts'
import { loadState } from '../../../edge/journal/state.ts'
import { JournalOutbox } from '../../../edge/journal/outbox.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-first-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const suffixes = ['', '-wal', '-shm', '.ballast'] as const

/** All work of a start on the journal. */
function start(path: string): Store {
  const runtime = virtualRuntime()
  const store = openStore({ path, checkpoint: noCheckpoint, log: silentLog })
  new JournalOutbox(store, runtime).flush()
  createInbox(store, runtime, silentLog)
  loadState(store, [1, 2, 3, 4])
  return store
}

/**
 * Lengths at which a file may be cut: each byte at its start, the ends of pages and log frames, and points
 * between.
 */
function lengthsOf(bytes: number): number[] {
  const lengths = [0, 1, 31, 32, 33, 99, 100, 101, bytes - 1]
  const step = Math.ceil(bytes / 8 / 4096) * 4096
  for (let at = step; at < bytes; at += step) lengths.push(at, at + 56, at + 701)
  return lengths.filter((length) => length >= 0 && length < bytes)
}

test('after a power cut at any byte of the first start the next start has a journal, and keeps it', () => {
  const whole = join(folder, 'whole.sqlite')
  const first = start(whole)
  // The files on the disk while the service runs.
  const files = suffixes.map((suffix) => ({ suffix, bytes: statSync(whole + suffix).size }))
  const cuts = files.flatMap(({ suffix, bytes }) =>
    (suffix === '.ballast' ? [0, 500_000] : lengthsOf(bytes)).map((length) => ({ suffix, length })),
  )
  expect(cuts.length).toBeGreaterThan(50)
  for (const { suffix, length } of cuts) {
    const path = join(folder, 'cut.sqlite')
    for (const each of suffixes)
      if (each === suffix) writeFileSync(path + each, readFileSync(whole + each).subarray(0, length))
      else copyFileSync(whole + each, path + each)
    const next = start(path)
    next.db.prepare("INSERT INTO meta (key, value) VALUES ('kept', 1)").run()
    next.close()
    const last = start(path)
    expect(
      last.db.prepare("SELECT value FROM meta WHERE key = 'kept'").pluck().get(),
      `${suffix} ${length}`,
    ).toBe('1')
    expect(statSync(`${path}.ballast`).size).toBe(1024 * 1024)
    last.close()
    for (const name of ['', '-wal', '-shm', '.ballast', '.damaged-1', '.damaged-1-wal', '.damaged-1-shm'])
      if (existsSync(path + name)) rmSync(path + name)
  }
  first.close()
}, 60_000)
