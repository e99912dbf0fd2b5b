import { createHash, hkdfSync } from 'node:crypto'
import type { Random } from '../../../protocol/model/runtime.ts'
import { decrypt, encrypt } from '../store/cipher.ts'

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

/** By which the database knows a key. */
export const digestOfKey = ({ caller, key }: KeyedCaller): string =>
  createHash('sha256').update(`${caller}\n${key}`).digest('hex')

const secretOf = ({ caller, key }: KeyedCaller): Buffer =>
  Buffer.from(hkdfSync('sha256', key, caller, 'larder kept answer', 32))

export const seal = (keyed: KeyedCaller, text: string, random: Random): string =>
  encrypt(secretOf(keyed), text, random)

/** Throws for what was not sealed for this caller and key. */
export const unseal = (keyed: KeyedCaller, sealed: string): string => decrypt(secretOf(keyed), sealed)
