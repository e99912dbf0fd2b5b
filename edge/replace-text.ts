import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Replaces a file; by default only its owner can read it. After a power cut it contains either the old or the new text. A
 * failure leaves no draft, which would take space.
 */
export function replaceText(path: string, text: string, mode = 0o600): void {
  const draft = `${path}.new`
  try {
    const file = openSync(draft, 'w', mode)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
