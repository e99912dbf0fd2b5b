import { hash, timingSafeEqual } from 'node:crypto'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Bytes as a number in base 62, padded to the maximum digits for their count: 43 for 32 bytes. */
export function base62(bytes: Uint8Array): string {
  const length = Math.ceil((bytes.length * 8) / Math.log2(62))
  let value = bytes.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
  let text = ''
  for (let index = 0; index < length; index += 1) {
    text = DIGITS[Number(value % 62n)] + text
    value /= 62n
  }
  return text
}

/** SHA-256, hexadecimal. Our secrets are random, so a slow digest would add nothing. */
export const digestOf = (secret: string): string => hash('sha256', secret)

/** Compares in constant time. */
export const isSameDigest = (left: string, right: string): boolean =>
  left.length === right.length && timingSafeEqual(Buffer.from(left), Buffer.from(right))
