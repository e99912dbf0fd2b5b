import { closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A file that is there while this service has the hub's service stopped: one that dies in between starts it again in its
 * next life.
 */
export interface PauseMark {
  set(): void
  clear(): void
  isSet(): boolean
}

export function pauseMark(path: string): PauseMark {
  return {
    set() {
      closeSync(openSync(path, 'w', 0o600))
      // The name itself must survive a power cut: after one, nobody else would start the hub.
      const folder = openSync(dirname(path), 'r')
      try {
        fsyncSync(folder)
      } finally {
        closeSync(folder)
      }
    },
    clear: () => rmSync(path, { force: true }),
    isSet: () => existsSync(path),
  }
}
