import { createRemoteJWKSet, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'

const Discovery = z.object({ jwks_uri: z.url() })
const FETCH_TIMEOUT_MS = 5000

/**
 * The keys of an OIDC issuer, found by discovery at the first token. `jose` caches them, and asks again, at most every 30 s,
 * for a key id that it does not know.
 */
export function remoteKeys(issuer: string): JWTVerifyGetKey {
  let found: Promise<JWTVerifyGetKey> | undefined
  return async (header, token) => {
    found ??= discover(issuer)
    try {
      return await (
        await found
      )(header, token)
    } catch (error) {
      // A discovery that failed is tried again with the next token.
      await found.catch(() => (found = undefined))
      throw error
    }
  }
}

async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  return createRemoteJWKSet(new URL(Discovery.parse(await answer.json()).jwks_uri))
}
