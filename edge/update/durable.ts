import { closeSync, copyFileSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** Copies a file. After a power failure the target is absent, the former one, or whole. */
export function copyDurably(from: string, to: string): void {
  copyFileSync(from, `${to}.draft`)
  sync(`${to}.draft`)
  renameSync(`${to}.draft`, to)
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
