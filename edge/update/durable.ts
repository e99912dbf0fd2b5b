import { closeSync, copyFileSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/** Copies a file. After a power failure the target is absent, the former one, or whole. A failed copy takes no space. */
export function copyDurably(from: string, to: string): void {
  const draft = `${to}.draft`
  try {
    copyFileSync(from, draft)
    sync(draft)
    renameSync(draft, to)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncFolder(dirname(to))
}

export const syncFolder = (path: string): void => sync(path)

function sync(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
