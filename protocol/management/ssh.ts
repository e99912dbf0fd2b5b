import { createHash } from 'node:crypto'

/**
 * The algorithms of both ends of the management channel (SPEC.md): no NIST curves in the key exchange, no SHA-1, no
 * CBC, only encrypt-then-MAC, no compression. `ssh2` has no key exchange that withstands quantum computers.
 */
export const sshAlgorithms = {
  kex: ['curve25519-sha256', 'curve25519-sha256@libssh.org'],
  cipher: ['aes256-gcm@openssh.com', 'aes128-gcm@openssh.com', 'aes256-ctr', 'aes192-ctr', 'aes128-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com'],
  compress: ['none'],
} as const

/**
 * The fingerprint of a public key in SSH's wire format, as `ssh-keygen -lf` prints it: `SHA256:…`. The cloud pins hubs
 * by it.
 */
export const fingerprintOf = (publicKey: Uint8Array): string =>
  `SHA256:${createHash('sha256').update(publicKey).digest('base64').replace(/=+$/, '')}`

export const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/
