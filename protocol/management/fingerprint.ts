import { createHash } from 'node:crypto'

/** Of a public key in SSH's wire format, as `ssh-keygen -lf` prints it: `SHA256:…`. The cloud pins hubs by it. */
export const fingerprintOf = (publicKey: Uint8Array): string =>
  `SHA256:${createHash('sha256').update(publicKey).digest('base64').replace(/=+$/, '')}`

export const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/
