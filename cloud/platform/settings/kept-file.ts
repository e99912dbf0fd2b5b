import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** The text of a file; undefined where there is none. Throws where it is empty: no secret is. */
export function readKept(path: string): string | undefined {
  try {
    return readWhole(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readWhole(path: string): string {
  const text = readFileSync(path, 'utf8')
  if (text.trim() === '')
    throw new Error(`${path} is empty: put it back from a backup, or remove it for a new one`)
  return text
}

/**
 * Keeps a secret text in a file that only its owner reads, unless the file is there already; the text that it then has. Of
 * processes that do so at once, the first one's text stays. It is durable before it is used: a power cut leaves all of it
 * or nothing.
 */
export function keepFirst(path: string, text: string): string {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true })
  const draft = `${path}.${process.pid}.new`
  rmSync(draft, { force: true })
  onOpen(draft, 'wx', (file) => writeFileSync(file, text))
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  onOpen(folder, 'r', () => {})
  return readWhole(path)
}

/** Opens a file or folder, and brings it to the disk. */
function onOpen(path: string, flags: 'wx' | 'r', work: (file: number) => void): void {
  const file = openSync(path, flags, 0o600)
  try {
    work(file)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
