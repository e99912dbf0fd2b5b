import { createHash, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../../protocol/model/runtime.ts'
import { base62 } from './base62.ts'

/** `lk_`, a public prefix of 8 characters, `_`, and 32 random bytes in base 62 (contract §3). */
const FORMAT = /^lk_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}$/

export interface NewApiKey {
  /** Shown once, stored nowhere. */
  key: string
  prefix: string
  digest: string
}

export function mintApiKey(random: Random): NewApiKey {
  // 6 bytes need 9 digits; the first says little.
  const prefix = base62(random.bytes(6)).slice(1)
  const key = `lk_${prefix}_${base62(random.bytes(32))}`
  return { key, prefix, digest: digestOf(key) }
}

/** The public prefix of what looks like an API key. */
export const prefixOf = (key: string): string | undefined => FORMAT.exec(key)?.[1]

/** SHA-256, hexadecimal. The key is random enough that a slow digest would add nothing. */
export const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex')

/** Compares in constant time. */
export const isSameDigest = (left: string, right: string): boolean =>
  left.length === right.length && timingSafeEqual(Buffer.from(left), Buffer.from(right))
