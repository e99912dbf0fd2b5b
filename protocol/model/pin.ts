import { scrypt, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { nameText } from './name-text.ts'
import type { Random } from './runtime.ts'

/** The PIN of a person for the page of a hub. */
export const Pin = z.string().regex(/^\d{4,12}$/, 'must have 4 to 12 digits')

/** The name of a person at the page of a hub. Two names that differ only in case are the same name. */
export const PersonName = nameText(60)
export const isSameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const HASH_BYTES = 32

/** The parameters of scrypt: N = 2^exponent, and p. */
interface Cost {
  exponent: number
  p: number
}

/**
 * 32 MiB and about half a second on a hub's board. A PIN has little entropy: for a thief of the hub's card this cost makes 10,000
 * guesses an hour of work on such a board. The hub limits guesses at its page.
 */
const COST: Cost = { exponent: 15, p: 2 }
/** Digests of the first version have no parameters. */
const FIRST_COST: Cost = { exponent: 14, p: 1 }
const MAX_MEMORY = 64 * 1024 * 1024

const hashOf = (pin: string, salt: Buffer, { exponent, p }: Cost): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(pin, salt, HASH_BYTES, { N: 2 ** exponent, p, maxmem: MAX_MEMORY }, (error, hash) =>
      error ? reject(error) : resolve(hash),
    ),
  )

const textOf = (salt: Buffer, hash: string, { exponent, p }: Cost): string =>
  `${salt.toString('hex')}.${hash}.${exponent}.${p}`

/** `SALT.HASH.EXPONENT.P`; salt and hash are hexadecimal. */
export async function pinDigestOf(pin: string, random: Random): Promise<string> {
  const salt = Buffer.from(random.bytes(16))
  return textOf(salt, (await hashOf(pin, salt, COST)).toString('hex'), COST)
}

/** The digest of no PIN. Its check costs as much time as that of a PIN. */
export const noPinDigest = textOf(Buffer.alloc(16), '', COST)

/** Whether the digest was made from the PIN. */
export async function isPinOf(digest: string, pin: string): Promise<boolean> {
  const [salt = '', hash = '', exponent = FIRST_COST.exponent, p = FIRST_COST.p] = digest.split('.')
  const cost = { exponent: Number(exponent), p: Number(p) }
  // Other parameters could take minutes.
  if (![COST, FIRST_COST].some((known) => known.exponent === cost.exponent && known.p === cost.p))
    return false
  const found = await hashOf(pin, Buffer.from(salt, 'hex'), cost)
  const wanted = Buffer.from(hash, 'hex')
  return wanted.length === found.length && timingSafeEqual(wanted, found)
}
