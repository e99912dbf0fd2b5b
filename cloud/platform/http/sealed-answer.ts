import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import type { Random } from '../../../protocol/model/runtime.ts'

/**
 * Answers that are kept for repetitions hold what only their caller may see (client secrets, contacts). The caller's own
 * `Idempotency-Key` opens them, and of that the database has a digest alone: whoever reads the database reads no answers, as
 * far as keys cannot be guessed.
 */
export interface KeyedCaller {
  /** `Credential.actor`. */
  caller: string
  key: string
}

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** By which the database knows a key. */
export const digestOfKey = ({ caller, key }: KeyedCaller): string =>
  createHash('sha256').update(`${caller}\n${key}`).digest('hex')

const secretOf = ({ caller, key }: KeyedCaller): Buffer =>
  Buffer.from(hkdfSync('sha256', key, caller, 'larder kept answer', 32))

export function seal(keyed: KeyedCaller, text: string, random: Random): string {
  const iv = random.bytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, secretOf(keyed), iv)
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')
}

/** Throws for what was not sealed for this caller and key. */
export function unseal(keyed: KeyedCaller, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64')
  const decipher = createDecipheriv(CIPHER, secretOf(keyed), bytes.subarray(0, IV_BYTES))
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const text = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]
  return Buffer.concat(text).toString('utf8')
}
