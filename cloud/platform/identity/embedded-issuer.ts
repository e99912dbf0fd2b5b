import { createLocalJWKSet, SignJWT, type JWTVerifyGetKey } from 'jose'
import type { DemoRouteId } from '../../../protocol/contract/routes.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { addressUnder } from '../public-url.ts'
import type { Handlers } from '../http/handler.ts'
import type { SigningKey } from './signing-key.ts'

/** Twelve hours, so that a token lasts for a whole day of demos. */
const LIFETIME_SECONDS = 12 * 3600

export interface EmbeddedIssuer {
  issuer: string
  keys: JWTVerifyGetKey
  handlers: Handlers<DemoRouteId>
}

/** Issues identity tokens to any caller, for demos and tests. Production refuses to start with it. */
export function createEmbeddedIssuer(options: {
  issuer: string
  audience: string
  key: SigningKey
  runtime: Runtime
  /** An owner's API key for people who try the demo. */
  apiKey?: string | undefined
}): EmbeddedIssuer {
  const { issuer, audience, key, runtime, apiKey = null } = options
  const jwks = { keys: [key.publicJwk] }
  return {
    issuer,
    keys: createLocalJWKSet(jwks),
    handlers: {
      'demo.identity.token': async ({ body }) => {
        const now = Math.floor(runtime.clock.now() / 1000)
        const { sub, email, ...claims } = body
        const token = new SignJWT({ ...claims, ...(email !== undefined && { email, email_verified: true }) })
          .setProtectedHeader({ alg: 'ES256', kid: key.publicJwk.kid, typ: 'JWT' })
          .setIssuer(issuer)
          .setAudience(audience)
          .setSubject(sub)
          .setIssuedAt(now)
          .setExpirationTime(now + LIFETIME_SECONDS)
        return {
          access_token: await token.sign(key.privateKey),
          token_type: 'Bearer',
          expires_in: LIFETIME_SECONDS,
        }
      },
      'demo.credentials': () => Promise.resolve({ api_key: apiKey }),
      'demo.identity.keys': () => Promise.resolve({ keys: [{ ...key.publicJwk }] }),
      'demo.identity.configuration': () =>
        Promise.resolve({
          issuer,
          jwks_uri: addressUnder(issuer, '/.well-known/jwks.json'),
          token_endpoint: addressUnder(issuer, '/demo/identity/token'),
          response_types_supported: ['token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
    },
  }
}
