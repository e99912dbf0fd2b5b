import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { storageReasonOf } from './storage-error.ts'

const BALLAST_BYTES = 1024 * 1024
/**
 * The free space that laying the ballast needs. The same space must remain free, because otherwise the next
 * entry would fill the disk again.
 */
const NEEDED_BYTES = 2 * BALLAST_BYTES
/** Number of empty files next to the ballast, each an inode: SQLite's log, its index and a draft need one each. */
const SPARES = 3
const sparesOf = (path: string): string[] =>
  Array.from({ length: SPARES }, (_, index) => `${path}.${index + 1}`)

/**
 * A file that only reserves space. On a full disk SQLite cannot even delete rows (measured); after the
 * ballast is deleted, it can.
 */
export interface Ballast {
  isLaid(): boolean
  /** Writes the file. Returns false if the disk has no room for it. */
  lay(): boolean
  /** The missing resource, if the ballast cannot be laid. */
  lack(): 'full' | 'no_inodes' | undefined
  release(): void
}

/** Deletes the ballast at `path`, which frees its space and inodes. */
export function releaseBallast(path: string): void {
  for (const file of [path, ...sparesOf(path)]) rmSync(file, { force: true })
}

/** Opens the ballast at `path`, and lays it if there is room. */
export function openBallast(path: string): Ballast {
  const isLaid = (): boolean =>
    existsSync(path) &&
    statSync(path).size === BALLAST_BYTES &&
    sparesOf(path).every((spare) => existsSync(spare))
  const release = (): void => releaseBallast(path)
  function lack(): 'full' | 'no_inodes' | undefined {
    const { bavail, bsize, files, ffree } = statfsSync(dirname(path))
    if (bavail * bsize < NEEDED_BYTES) return 'full'
    // Some file systems do not count inodes.
    return files > 0 && ffree <= SPARES + 1 ? 'no_inodes' : undefined
  }
  function lay(): boolean {
    if (isLaid()) return true
    if (lack() !== undefined) {
      // Removes the parts of an unfinished ballast.
      release()
      return false
    }
    let file: number | undefined
    try {
      for (const spare of sparesOf(path)) closeSync(openSync(spare, 'w'))
      file = openSync(path, 'w')
      // Noise, so that a compressing file system really reserves the space.
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
