import { createHmac, hkdfSync, createCipheriv, createDecipheriv } from 'node:crypto'
import { join } from 'node:path'
import type { Random } from '../../../protocol/model/runtime.ts'
import { ensureRandom, type Say } from '../settings/stored-file.ts'

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
  'client secret' | 'push token' | 'customer mark' | 'payer network' | 'authority key' | 'sign-in' | 'passkey'

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

/** A sealer with keys from the inner secret (`open-sealer.ts`). */
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
