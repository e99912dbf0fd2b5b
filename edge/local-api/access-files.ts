import { readFileSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { replaceText } from '../replace-text.ts'
import type { SessionFile } from './sessions.ts'

/** The text of a file; undefined if it does not exist. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
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
