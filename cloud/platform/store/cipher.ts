import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Random } from '../../../protocol/model/runtime.ts'

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
