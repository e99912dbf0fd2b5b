import { createHmac, hkdfSync, createCipheriv, createDecipheriv } from 'node:crypto'
import { join } from 'node:path'
import type { Random } from '../../../protocol/model/runtime.ts'
import { ensureRandom, type Say } from '../settings/stored-file.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import { UsageError } from '../settings/usage-error.ts'
import { isUniqueViolation, type CloudDatabase, type Queries, type Tx } from './database.ts'

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** Encrypts and authenticates a text by a key of 32 bytes. */
export function encrypt(key: Buffer, text: string, random: Random): string {
  const iv = random.bytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv)
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')
}

/** Throws if the text was not encrypted with this key. */
export function decrypt(key: Buffer, encrypted: string): string {
  const bytes = Buffer.from(encrypted, 'base64')
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES))
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const text = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]
  return Buffer.concat(text).toString('utf8')
}

/** Purposes of secret values. Each purpose has its own key. */
type Purpose =
  | 'client secret'
  | 'push token'
  | 'customer mark'
  | 'payer network'
  | 'authority key'
  | 'sign-in'
  | 'passkey'
  | 'next claim code'

/**
 * Seals texts in the database that only the service may read. Neither the database nor a backup of it contains the
 * sealing secret, so a person who reads either cannot open them.
 */
export interface Sealer {
  seal(purpose: Purpose, text: string): string
  /** Throws if the text was sealed with another secret, or for another purpose. */
  open(purpose: Purpose, sealed: string): string
  /** A keyed digest in hexadecimal. It is deterministic, and useless without the secret. */
  digest(purpose: Purpose, text: string): string
}

/** A sealer with keys from the inner secret. */
export function createSealer(secret: string, random: Random): Sealer {
  const keys = new Map<Purpose, Buffer>()
  function keyOf(purpose: Purpose): Buffer {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', secret, '', `larder ${purpose}`, 32))
    keys.set(purpose, key)
    return key
  }
  return {
    digest: (purpose, text) => createHmac('sha256', keyOf(purpose)).update(text).digest('hex'),
    seal: (purpose, text) => encrypt(keyOf(purpose), text, random),
    open(purpose, sealed) {
      try {
        return decrypt(keyOf(purpose), sealed)
      } catch (cause) {
        throw new Error(
          `STORE_SECRET: a ${purpose} in the database was sealed by another secret, or changed since`,
          { cause },
        )
      }
    },
  }
}

/** For programs that handle no sealed values. They do not need the secret. */
export const noSealer: Sealer = { seal: refuse, open: refuse, digest: refuse }

function refuse(): never {
  throw new Error('this program neither seals nor opens secrets')
}

/** Reads the sealing secret from a file in a folder; creates it if it is absent. */
export const ensureStoreSecret = (folder: string, random: Random, say: Say): string =>
  ensureRandom(join(folder, 'store-secret'), random, say)

const keyOf = (secret: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', 'larder store', 32))
const idOf = (secret: string): string =>
  Buffer.from(hkdfSync('sha256', secret, '', 'larder store id', 8)).toString('hex')

/**
 * The sealer of a database. A random inner secret seals all values. The database stores it once per secret of
 * `STORE_SECRET`, encrypted with that secret. To rotate, put a new secret in front of the former one: no value is
 * sealed again, and processes with the former setting continue. A start without the former secret ends the rotation.
 * Throws a `UsageError` if no given secret opens the database.
 */
export async function openSealer(
  db: CloudDatabase,
  secrets: readonly string[],
  random: Random,
): Promise<Sealer> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return createSealer(await db.transact((tx) => innerSecret(tx, secrets, random)), random)
    } catch (error) {
      // Another process has initialized the empty database first.
      if (attempt === 3 || !isUniqueViolation(error)) throw error
    }
}

/** The sealer of a database that the service has used, for a command. Changes nothing. Throws a `UsageError` if no secret opens it. */
export async function existingSealer(
  q: Queries,
  secrets: readonly string[],
  random: Random,
): Promise<Sealer> {
  const inner = opened(await q.selectFrom('store_seals').selectAll().execute(), secrets)
  if (inner === undefined)
    throw new UsageError(
      'STORE_SECRET: this command needs the secret of the service, which opens its database',
    )
  return createSealer(inner, random)
}

/** Whether one of the secrets opens the database; undefined if no service has used the database yet. Changes nothing. */
export async function opensStore(q: Queries, secrets: readonly string[]): Promise<boolean | undefined> {
  const rows = await q.selectFrom('store_seals').select('key_id').execute()
  return rows.length === 0 ? undefined : rows.some(({ key_id }) => secrets.map(idOf).includes(key_id))
}

async function innerSecret(tx: Tx, secrets: readonly string[], random: Random): Promise<string> {
  const rows = await tx.forUpdate(tx.q.selectFrom('store_seals').selectAll().orderBy('number')).execute()
  const inner = rows.length === 0 ? randomHex(random, 32) : opened(rows, secrets)
  if (inner === undefined)
    throw new UsageError(
      'STORE_SECRET: the database was sealed with another secret. Set the one that all processes had; for a rotation set the new secret, a comma and the former one.',
    )
  const missing = secrets.filter((secret) => !rows.some(({ key_id }) => key_id === idOf(secret)))
  const last = rows.at(-1)?.number ?? 0
  for (const [index, secret] of missing.entries())
    await tx.q
      .insertInto('store_seals')
      .values({
        number: last + 1 + index,
        key_id: idOf(secret),
        sealed: encrypt(keyOf(secret), inner, random),
      })
      .execute()
  await tx.q.deleteFrom('store_seals').where('key_id', 'not in', secrets.map(idOf)).execute()
  return inner
}

function opened(
  rows: readonly { key_id: string; sealed: string }[],
  secrets: readonly string[],
): string | undefined {
  for (const secret of secrets) {
    const row = rows.find(({ key_id }) => key_id === idOf(secret))
    if (row) return decrypt(keyOf(secret), row.sealed)
  }
  return undefined
}
