import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { parsePeople, type Person } from './people.ts'
import type { SessionFile } from './sessions.ts'

/** A change of the people's file takes effect within this time. */
const READ_EVERY_MS = 1000

/** The text of a file; undefined if it does not exist. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Replaces a file that only its owner can read. After a power cut it contains either the old or the new text. */
export function replaceText(path: string, text: string): void {
  const draft = `${path}.new`
  const file = openSync(draft, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

export const sessionFile = (path: string, log: Log): SessionFile => ({
  read() {
    try {
      return textOf(path)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the sessions of the page cannot be read: people log in again')
      return undefined
    }
  },
  write(text) {
    try {
      replaceText(path, text)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the sessions of the page cannot be stored')
    }
  },
})

/** The people in a file, read again at most once a second. If the file cannot be read, no personal token works. */
export function peopleIn(path: string, clock: Clock, log: Log): () => readonly Person[] {
  let known: { people: readonly Person[]; at: number } | undefined
  return () => {
    const at = clock.monotonic()
    if (known === undefined || at - known.at >= READ_EVERY_MS) known = { people: read(), at }
    return known.people
  }

  function read(): readonly Person[] {
    try {
      const text = textOf(path)
      return text === undefined ? [] : parsePeople(text)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the list of people cannot be read: their tokens are refused')
      return []
    }
  }
}
