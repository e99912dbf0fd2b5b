import type { Log } from './log.ts'
import { reasonOf, RepeatedLine } from './repeated-lines.ts'
import { every, type Cancel, type Clock } from './runtime.ts'

/**
 * Files that are replaced while a program runs, such as certificates: the program uses the new ones without a restart.
 */

const POLL_MS = 60_000

export interface FreshFilesOptions<Name extends string> {
  /** By setting: the file's path; undefined if it is not set. */
  paths: Readonly<Record<Name, string | undefined>>
  /** The texts that the program read at its start. */
  texts: Readonly<Record<Name, string | undefined>>
  read: (path: string) => string
  clock: Clock
  log: Log
  /**
   * Uses all files with their present texts. If it throws, the former ones stay in use and the next poll tries again.
   */
  use: (texts: Readonly<Record<Name, string | undefined>>) => void
  everyMs?: number
}

/**
 * Polls the files once a minute, and uses them together if one has changed. A file that cannot be read or used causes
 * one warning; the former files stay in use.
 */
export function followFiles<Name extends string>(options: FreshFilesOptions<Name>): Cancel {
  const { paths, read, clock, log, use, everyMs = POLL_MS } = options
  const names = (Object.keys(paths) as Name[]).filter((name) => paths[name] !== undefined)
  const failures = new RepeatedLine({ log, clock })
  let texts = options.texts
  if (names.length === 0) return () => {}
  return every(clock, everyMs, () => {
    try {
      const now: Record<Name, string | undefined> = { ...texts }
      for (const name of names) now[name] = read(paths[name]!)
      const changed = names.filter((name) => now[name] !== texts[name])
      if (changed.length === 0) return
      use(now)
      texts = now
      failures.succeeded({ settings: changed }, 'renewed files can be used again')
      log.info({ settings: changed }, 'renewed files are used from now on')
    } catch (error) {
      failures.failed(
        reasonOf(error),
        { settings: names },
        'renewed files cannot be used: the former ones stay',
      )
    }
  })
}
