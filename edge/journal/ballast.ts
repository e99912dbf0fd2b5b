import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { storageReasonOf } from './storage-error.ts'

const BALLAST_BYTES = 1024 * 1024
/** It is laid where as much remains besides: the very next entry would otherwise fill the disk again. */
const NEEDED_BYTES = 2 * BALLAST_BYTES
/** Empty files beside it, each an inode: SQLite's log, its index, and a draft need one each. */
const SPARES = 3
const sparesOf = (path: string): string[] =>
  Array.from({ length: SPARES }, (_, index) => `${path}.${index + 1}`)

/**
 * A file that occupies space for no other purpose than to be deleted: on a full disk SQLite cannot even delete rows
 * (measured), and with the ballast gone it can.
 */
export interface Ballast {
  isLaid(): boolean
  /** Writes the file. False where the disk has no room for it. */
  lay(): boolean
  /** What the disk lacks to lay it. */
  lack(): 'full' | 'no_inodes' | undefined
  release(): void
}

/** Deletes the ballast at `path`: its space and its inodes are free. */
export function releaseBallast(path: string): void {
  for (const file of [path, ...sparesOf(path)]) rmSync(file, { force: true })
}

/** The ballast at `path`, laid where there is room. */
export function openBallast(path: string): Ballast {
  const isLaid = (): boolean =>
    existsSync(path) &&
    statSync(path).size === BALLAST_BYTES &&
    sparesOf(path).every((spare) => existsSync(spare))
  const release = (): void => releaseBallast(path)
  function lack(): 'full' | 'no_inodes' | undefined {
    const { bavail, bsize, files, ffree } = statfsSync(dirname(path))
    if (bavail * bsize < NEEDED_BYTES) return 'full'
    // Some file systems count no inodes.
    return files > 0 && ffree <= SPARES + 1 ? 'no_inodes' : undefined
  }
  function lay(): boolean {
    if (isLaid()) return true
    if (lack() !== undefined) {
      // Of one that was not finished.
      release()
      return false
    }
    let file: number | undefined
    try {
      for (const spare of sparesOf(path)) closeSync(openSync(spare, 'w'))
      file = openSync(path, 'w')
      // Noise, so that a compressing file system cannot give it away for nothing.
      const block = Buffer.from(
        Array.from({ length: 65_536 }, (_, index) => (index * 167 + (index >> 8) * 13) & 0xff),
      )
      for (let written = 0; written < BALLAST_BYTES; written += block.length) writeSync(file, block)
      fsyncSync(file)
      return true
    } catch (error) {
      const reason = storageReasonOf(error, path)
      if (reason !== 'full' && reason !== 'no_inodes') throw error
      release()
      return false
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
  lay()
  return { isLaid, lack, lay, release }
}
