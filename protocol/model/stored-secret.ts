import { createHash } from 'node:crypto'

/** The file operations that storing a secret needs; `node:fs` has them. */
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

/** The secret in the file at `path`; undefined if the file is absent or empty. */
export function readSecret(files: SecretFiles, path: string): string | undefined {
  return ifSecret(textOf(files, path))
}

/**
 * Stores a secret in a file that only its owner may read, unless the file already contains one. Returns the stored
 * secret. An empty file is replaced, and `say` gets a message. The text appears at one instant and is durable before
 * this function returns, so a power cut does no harm. If several processes store at once, the first secret stays.
 */
export function storeSecret(
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
  // Also if another process made the file: that process may not have reached its own sync yet.
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
  // A name for each secret, because several processes may store at once. A power cut may leave this file; it is never
  // read.
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
