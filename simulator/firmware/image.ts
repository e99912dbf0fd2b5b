import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { imageHeader, type ImageHeader } from '../../protocol/serial/image.ts'

/** The images that fit boards with the built-in firmware. */
export const SIMULATED_KIND = 'larder-sim'
/** The program of an image that never answers. */
export const HANGS = 'hangs'

/** RFC 8410: an Ed25519 key in PKCS #8, before its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** Everybody knows this key: it protects nothing. A real board contains the public key of its maker. */
const seed = createHash('sha256').update('the firmware of simulated boards').digest()
const simulatedKey = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })
export const simulatedPublicKey = createPublicKey(simulatedKey)

/** A signed image (SPEC §12). */
export function makeImage(
  { kind = SIMULATED_KIND, build }: Partial<ImageHeader> & { build: number },
  program: string | Uint8Array = 'a program',
): Buffer {
  const body = Buffer.concat([Buffer.from(imageHeader({ kind, build })), Buffer.from(program)])
  return Buffer.concat([body, sign(null, body, simulatedKey)])
}

export const sumOf = (image: Uint8Array): string => createHash('sha256').update(image).digest('hex')
