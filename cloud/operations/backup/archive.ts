import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Decrypter, Encrypter } from 'age-encryption'
import { z } from 'zod'

/**
 * The file of a backup: a tar archive, compressed with gzip and, with a passphrase, encrypted in the age format. Standard
 * programs open it without Larder: `age --decrypt FILE | tar -xz`.
 *
 * | Member | Content |
 * |---|---|
 * | `manifest.json` | `Manifest` |
 * | `database.sqlite` or `database.dump` | a SQLite file, or the custom format of `pg_dump` |
 * | `cloud.json` | the settings, from file and environment |
 * | `secrets/` | the secrets and keys of DATA_DIR |
 * | `media/` or `media.json` | the files, or their list if a bucket stores them |
 */
export const Manifest = z.object({
  format: z.literal(1),
  created_at: z.iso.datetime(),
  /** The version of Larder that made it. */
  version: z.string(),
  schema_version: z.string(),
  /** Digest of the declared tables. */
  schema: z.string(),
  database: z.enum(['sqlite', 'postgres']),
  media: z.enum(['included', 'manifest']),
})
export type Manifest = z.infer<typeof Manifest>

export const databaseFile = (database: Manifest['database']): string =>
  database === 'sqlite' ? 'database.sqlite' : 'database.dump'

const AGE = 'age-encryption.org/v1'
/** A passphrase file contains a random text, so that 2^15 rounds suffice. The default takes seconds on a small machine. */
const SCRYPT_LOG_N = 15

/** Packs members of a folder into a file. Links are followed. */
export async function pack(
  folder: string,
  members: readonly string[],
  file: string,
  passphrase: string | undefined,
): Promise<{ size_bytes: number; sha256: string }> {
  const tar = spawn('tar', ['-chz', '--exclude=*.part', '-C', folder, ...members], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const hash = createHash('sha256')
  let size = 0
  async function* counted(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      hash.update(chunk)
      size += chunk.length
      yield chunk
    }
  }
  const sealed = passphrase === undefined ? tar.stdout : await encrypted(tar.stdout, passphrase)
  // Status 1: a file was changed or removed in the meantime, for example a picture.
  await both(ended(tar, [0, 1]), pipeline(sealed, counted, createWriteStream(file, { flush: true })))
  return { size_bytes: size, sha256: hash.digest('hex') }
}

/** Unpacks a file into a folder. Throws if the file is damaged or truncated, or if the passphrase is wrong. */
export async function unpack(
  file: string,
  folder: string,
  passphrase: string | undefined,
): Promise<Manifest> {
  const source = createReadStream(file)
  const plain = (await isEncrypted(file)) ? await decrypted(source, passphrase) : source
  const tar = spawn('tar', ['-xz', '--no-same-owner', '-C', folder], { stdio: ['pipe', 'ignore', 'pipe'] })
  await both(ended(tar, [0]), pipeline(plain, tar.stdin))
  return Manifest.parse(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')))
}

export async function isEncrypted(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer } = await handle.read(Buffer.alloc(AGE.length), 0, AGE.length, 0)
    return buffer.toString('latin1') === AGE
  } finally {
    await handle.close()
  }
}

async function encrypted(source: Readable, passphrase: string): Promise<Readable> {
  const encrypter = new Encrypter()
  encrypter.setPassphrase(passphrase)
  encrypter.setScryptWorkFactor(SCRYPT_LOG_N)
  return fromWeb(await encrypter.encrypt(toWeb(source)))
}

async function decrypted(source: Readable, passphrase: string | undefined): Promise<Readable> {
  if (passphrase === undefined)
    throw new Error('the backup is encrypted: set BACKUP_PASSPHRASE_FILE to the file with its passphrase')
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  try {
    return fromWeb(await decrypter.decrypt(toWeb(source)))
  } catch (cause) {
    source.destroy()
    throw new Error('the passphrase is not that of the backup, or its first bytes are damaged', { cause })
  }
}

const toWeb = (source: Readable) => Readable.toWeb(source) as ReadableStream<Uint8Array>
const fromWeb = (stream: ReadableStream<Uint8Array>): Readable =>
  Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0])

/** The end of a program. Throws an error with the program's own message. */
export function ended(child: ChildProcess, allowed: readonly number[] = [0]): Promise<void> {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2000)))
  const name = child.spawnfile
  return new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new Error(`${name} cannot be run: ${cause.message}`, { cause })))
    child.once('close', (code) =>
      code !== null && allowed.includes(code)
        ? resolve()
        : reject(new Error(`${name} failed: ${errors.trim() || `status ${code}`}`)),
    )
  })
}

/** Waits for both. If both fail, the error of the stream that was read explains more than the broken pipe. */
export async function both(program: Promise<void>, stream: Promise<void>): Promise<void> {
  const [first, second] = await Promise.allSettled([program, stream])
  const broken = second.status === 'rejected' && (second.reason as { code?: string }).code !== 'EPIPE'
  if (broken) throw second.reason
  if (first.status === 'rejected') throw first.reason
}
