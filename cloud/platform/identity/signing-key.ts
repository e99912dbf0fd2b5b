import { join } from 'node:path'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose'
import { z } from 'zod'
import { storeFirst, readStored, type Say } from '../settings/stored-file.ts'

/** An ES256 key pair. Its id is its thumbprint, so ids are unique. */
export interface SigningKey {
  privateKey: CryptoKey
  publicJwk: JWK & { kid: string }
}

const StoredKey = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  d: z.string(),
})

export async function mintSigningKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return exportJWK(privateKey)
}

export async function signingKeyOf(jwk: JWK): Promise<SigningKey> {
  const { d: _, ...publicPart } = StoredKey.parse(jwk)
  return {
    privateKey: (await importJWK({ ...jwk, alg: 'ES256' }, 'ES256')) as CryptoKey,
    publicJwk: {
      ...publicPart,
      kid: await calculateJwkThumbprint(publicPart),
      alg: 'ES256',
      use: 'sig',
    },
  }
}

/** Reads the key from a file in a folder; creates it if it is absent. */
export async function ensureSigningKey(folder: string, say: Say): Promise<SigningKey> {
  const path = join(folder, 'identity-key.json')
  const text = readStored(path) ?? storeFirst(path, JSON.stringify(await mintSigningKey()), say)
  return signingKeyOf(StoredKey.parse(JSON.parse(text)))
}
