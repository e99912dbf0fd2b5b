import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { lockStore } from '../../../edge/journal/store-lock.ts'
import { missing, service } from '../../support/services.ts'
import { board } from './support/moving-board.ts'

let folder: string
let disk: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-full-'))
  disk = join(folder, 'disk')
  mkdirSync(disk)
  if (missing('tmpfs') === undefined)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'larder-test', disk])
  vi.stubEnv('TMPDIR', disk)
})
afterEach(() => {
  vi.unstubAllEnvs()
  if (missing('tmpfs') === undefined) execFileSync('umount', [disk])
  rmSync(folder, { recursive: true })
})

/** Fills the disk except for some bytes. */
function fillUp(free: number): void {
  const path = join(disk, 'filler')
  const file = openSync(path, 'w')
  let written = 0
  try {
    for (;;) written += writeSync(file, Buffer.alloc(4096, 1))
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' })
  }
  closeSync(file)
  truncateSync(path, Math.max(0, written - free))
}

service('tmpfs')(
  'a board that has the order to leave completes its move on a disk that is full, or almost full',
  () => {
    for (const pages of [0, 1, 2, 8, 16, 32, 40, 48, 64, 128]) {
      const { complete, state, store, folder: its } = board()
      // The former hub has left this file.
      lockStore(store, { pid: 7, since: 'then' }).release()
      fillUp(pages * 4096)
      complete()
      expect([pages, state()]).toMatchObject([
        pages,
        { hub: 100_000_001, key: 'the next key', journal: [true, true], next: undefined, moving: undefined },
      ])
      rmSync(join(disk, 'filler'))
      rmSync(its, { recursive: true })
    }
  },
)
