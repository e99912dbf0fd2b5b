import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const BALLAST_BYTES = 1024 * 1024
/** It is laid where as much remains besides: the very next entry would otherwise fill the disk again. */
const NEEDED_BYTES = 2 * BALLAST_BYTES

/**
 * A file that occupies space for no other purpose than to be deleted: on a full disk SQLite cannot even delete rows
 * (measured), and with the ballast gone it can.
 */
export interface Ballast {
  isLaid(): boolean
  /** Writes the file. False where the disk has no room for it. */
  lay(): boolean
  release(): void
}

/** The ballast at `path`, laid where there is room. */
export function openBallast(path: string): Ballast {
  const isLaid = (): boolean => existsSync(path) && statSync(path).size === BALLAST_BYTES
  const release = (): void => rmSync(path, { force: true })
  function lay(): boolean {
    if (isLaid()) return true
    const { bavail, bsize } = statfsSync(dirname(path))
    if (bavail * bsize < NEEDED_BYTES) {
      // Of one that was not finished.
      release()
      return false
    }
    const file = openSync(path, 'w')
    try {
      // Noise, so that a compressing file system cannot give it away for nothing.
      const block = Buffer.from(
        Array.from({ length: 65_536 }, (_, index) => (index * 167 + (index >> 8) * 13) & 0xff),
      )
      for (let written = 0; written < BALLAST_BYTES; written += block.length) writeSync(file, block)
      fsyncSync(file)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      release()
      return false
    } finally {
      closeSync(file)
    }
  }
  lay()
  return { isLaid, lay, release }
}
