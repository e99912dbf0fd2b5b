import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openBallast } from '../../../edge/journal/ballast.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { partOf } from '../../../edge/update/files.ts'
import { update, type UpdaterWorld } from '../../../edge/update/updater.ts'
import { systemWorld } from '../../../edge/update/world.ts'
import { replaceText } from '../../../edge/replace-text.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { service } from '../../support/services.ts'
import { NEW, OLD, releaseOf, updateBoard, updaterSettings } from '../../world/update-board.ts'

/** A small disk with the updater's real files. */
function smallDisk(): string {
  const disk = mkdtempSync(join(tmpdir(), 'larder-small-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'larder-test', disk])
  onTestFinished(() => {
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true })
  })
  return disk
}

function fillUp(disk: string): void {
  expect(() => writeFileSync(join(disk, 'filler'), Buffer.alloc(16 << 20, 1))).toThrow('ENOSPC')
}

function tablesOf(store: string, version?: number): unknown {
  const db = new Sqlite(store)
  try {
    db.pragma('journal_mode = WAL')
    if (version !== undefined)
      db.exec(`CREATE TABLE t${version} (id INTEGER); PRAGMA user_version = ${version}`)
    return db.pragma('user_version', { simple: true })
  } finally {
    db.close()
  }
}

for (const hasBallast of [true, false]) {
  const title = `a new version that fills the disk ${hasBallast ? 'beside' : 'without'} a ballast is given up, and the journal returns`
  service('tmpfs')(title, async () => {
    const disk = smallDisk()
    const store = join(disk, 'hub.sqlite')
    tablesOf(store, 1)
    if (hasBallast) openBallast(`${store}.ballast`)
    const releases = join(disk, 'releases')
    for (const version of [OLD, NEW]) {
      mkdirSync(join(releases, version), { recursive: true })
      writeFileSync(join(releases, version, 'program'), Buffer.alloc(500_000, 1))
    }
    const real = systemWorld({ store, update: {} } as never, systemRuntime(), silentLog)
    real.link(OLD)
    const model = updateBoard()
    const world: UpdaterWorld = {
      ...real,
      clock: model.world.clock,
      desired: () => releaseOf(NEW),
      isBusy: () => false,
      install: () => Promise.resolve(),
      health: () => Promise.resolve({ version: real.running(), problem: 'the disk is full', silent: [] }),
      service: {
        stop: () => Promise.resolve(),
        start() {
          if (real.linked() !== NEW) return Promise.resolve()
          tablesOf(store, 2)
          fillUp(disk)
          return Promise.resolve()
        },
      },
    }
    await update(world, updaterSettings)
    expect([real.linked(), tablesOf(store)]).toEqual([OLD, 1])
    expect(real.state.read()).toMatchObject({ now: { step: 'idle' }, last: { error: 'the disk is full' } })
    expect(readdirSync(releases).toSorted()).toEqual([OLD, 'current'])
  })
}

service('tmpfs')('a file that a full disk does not store leaves no draft', () => {
  const disk = smallDisk()
  const path = join(disk, 'state.json')
  replaceText(path, 'before')
  fillUp(disk)
  expect(() => replaceText(path, 'x'.repeat(10_000))).toThrow('ENOSPC')
  expect(readdirSync(disk).toSorted()).toEqual(['filler', 'state.json'])
})

test('an unfinished download of the desired release is kept, and others are removed', () => {
  const disk = mkdtempSync(join(tmpdir(), 'larder-tidy-'))
  onTestFinished(() => rmSync(disk, { recursive: true }))
  const releases = join(disk, 'releases')
  mkdirSync(releases)
  for (const version of [OLD, NEW]) writeFileSync(join(releases, partOf(version)), 'a part')
  systemWorld({ store: join(disk, 'hub.sqlite'), update: {} } as never, systemRuntime(), silentLog).tidy([
    NEW,
  ])
  expect([OLD, NEW].map((version) => existsSync(join(releases, partOf(version))))).toEqual([false, true])
})
