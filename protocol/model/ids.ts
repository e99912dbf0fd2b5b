import type { Runtime } from './runtime.ts'

const hexOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function hex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += hexOf[byte]!
  return text
}

/** A UUIDv7 (RFC 9562 §5.7) in its canonical form: 48 bits of wall time, 74 random bits. */
export function uuidv7({ clock, random }: Runtime): string {
  const bytes = random.bytes(16)
  const time = clock.now()
  const high = Math.floor(time / 2 ** 32)
  bytes[0] = high >>> 8
  bytes[1] = high
  bytes[2] = time / 2 ** 24
  bytes[3] = time / 2 ** 16
  bytes[4] = time / 2 ** 8
  bytes[5] = time
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const text = hex(bytes)
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
    '-',
  )
}

/** A random identifier of `byteCount` bytes, in lower-case hexadecimal (epochs, sessions, request ids). */
export function randomHex(random: Runtime['random'], byteCount: number): string {
  return hex(random.bytes(byteCount))
}
