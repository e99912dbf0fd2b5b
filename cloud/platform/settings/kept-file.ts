import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** The text of a file; undefined where there is none. */
export function readKept(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Keeps a secret text in a file that only its owner reads, unless the file is there already; the text that it then has. Of
 * processes that do so at once, the first one's text stays.
 */
export function keepFirst(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}.new`
  writeFileSync(draft, text, { mode: 0o600 })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return readFileSync(path, 'utf8')
}
