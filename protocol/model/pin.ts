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

/** A PIN has little entropy. A slow hash costs a thief of the hub's card time; the hub limits guesses at its page. */
const hashOf = (pin: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(pin, salt, HASH_BYTES, (error, hash) => (error ? reject(error) : resolve(hash))),
  )

/** `SALT.HASH`, hexadecimal. */
export async function pinDigestOf(pin: string, random: Random): Promise<string> {
  const salt = Buffer.from(random.bytes(16))
  return `${salt.toString('hex')}.${(await hashOf(pin, salt)).toString('hex')}`
}

/** Whether the digest was made from the PIN. */
export async function isPinOf(digest: string, pin: string): Promise<boolean> {
  const [salt = '', hash = ''] = digest.split('.')
  const found = await hashOf(pin, Buffer.from(salt, 'hex'))
  const wanted = Buffer.from(hash, 'hex')
  return wanted.length === found.length && timingSafeEqual(wanted, found)
}
