import type { webcrypto } from 'node:crypto'

export type { Pkcs10CertificateRequest, PublicKey } from '@peculiar/x509'

/**
 * Certificates and requests (`@peculiar/x509`). Loaded at its first use, because it takes most of a second and 18 MB:
 * a hub needs it only while it enrols or renews.
 */
export async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  // The library's containers need it.
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

/** A key of WebCrypto. Node has no global name for its type. */
export type Key = webcrypto.CryptoKey

/** ECDSA with P-256 and SHA-256: the keys of hubs and of the cloud's authority. */
export const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A private key as PEM (PKCS #8). */
export const privatePem = async (key: Key): Promise<string> => {
  const { PemConverter } = await loadX509()
  return `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`
}

/** Reads a private key for ECDSA with P-256 from PEM (PKCS #8). */
export const readPrivatePem = async (pem: string): Promise<Key> => {
  const { PemConverter } = await loadX509()
  return crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), P256, true, ['sign'])
}
