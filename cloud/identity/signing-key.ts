import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose'
import { z } from 'zod'

/** An ES256 key pair. Its id is its thumbprint, so that another key is never mistaken for it. */
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

/** The key kept in a folder, made there at first. Of processes that do so at once, the first one's key stays. */
export async function keptSigningKey(folder: string): Promise<SigningKey> {
  const path = join(folder, 'identity-key.json')
  mkdirSync(folder, { recursive: true })
  const known = read(path)
  if (known) return signingKeyOf(known)
  const fresh = await mintSigningKey()
  const scratch = `${path}.${process.pid}`
  writeFileSync(scratch, JSON.stringify(fresh), { mode: 0o600 })
  try {
    linkSync(scratch, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(scratch, { force: true })
  }
  return signingKeyOf(read(path) ?? fresh)
}

function read(path: string): JWK | undefined {
  try {
    return StoredKey.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
