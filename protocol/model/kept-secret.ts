import { createHash } from 'node:crypto'

/** What keeping a secret does to a file system; `node:fs` is one. */
export interface SecretFiles {
  mkdirSync(folder: string, options: { recursive: true; mode: number }): unknown
  openSync(path: string, flags: string, mode?: number): number
  writeFileSync(file: number, text: string): void
  fsyncSync(file: number): void
  closeSync(file: number): void
  linkSync(from: string, to: string): void
  rmSync(path: string, options: { force: true }): void
  readFileSync(path: string, encoding: 'utf8'): string
}

/** The secret in the file at `path`; undefined where there is none, or the file is empty. */
export function readSecret(files: SecretFiles, path: string): string | undefined {
  return ifSecret(textOf(files, path))
}

/**
 * Keeps a secret in a file that only its owner reads, unless there is one already; returns the secret that it then holds. A
 * file that is empty holds none: `say` is told, and it is replaced. The whole text appears at one instant, and is on the
 * disk before anybody hears of it, so that the power may be cut at any moment. Of processes that do so at once, the first
 * one's secret stays.
 */
export function keepSecret(
  files: SecretFiles,
  path: string,
  secret: string,
  say: (sentence: string) => void,
): string {
  const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) || '/' : '.'
  files.mkdirSync(folder, { recursive: true, mode: 0o700 })
  const present = textOf(files, path)
  if (present !== undefined && ifSecret(present) === undefined) {
    files.rmSync(path, { force: true })
    say(`${path} was empty, as a power cut may leave a file: a new secret is made`)
  }
  if (ifSecret(present) === undefined) publish(files, path, secret)
  // Also where another process has made it: it may not have come so far yet.
  sync(files, folder)
  const kept = readSecret(files, path)
  if (kept === undefined) throw new Error(`${path} holds no secret: remove it, so that a new one is made`)
  return kept
}

const ifSecret = (text: string | undefined): string | undefined => (text?.trim() === '' ? undefined : text)

function textOf(files: SecretFiles, path: string): string | undefined {
  try {
    return files.readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function publish(files: SecretFiles, path: string, secret: string): void {
  // A name of its own: several processes may do so at once. What a power cut leaves of it is nobody's secret.
  const draft = `${path}.${createHash('sha256').update(secret).digest('hex').slice(0, 8)}.new`
  const file = files.openSync(draft, 'w', 0o600)
  try {
    files.writeFileSync(file, secret)
    files.fsyncSync(file)
    files.linkSync(draft, path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  } finally {
    files.closeSync(file)
    files.rmSync(draft, { force: true })
  }
}

function sync(files: SecretFiles, folder: string): void {
  const file = files.openSync(folder, 'r')
  try {
    files.fsyncSync(file)
  } finally {
    files.closeSync(file)
  }
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined
