import { createLocalJWKSet, SignJWT, type JWTVerifyGetKey } from 'jose'
import type { DemoRouteId } from '../../../protocol/contract/routes.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { addressUnder } from '../public-url.ts'
import type { Handlers } from '../http/handler.ts'
import { demoSignIn } from './demo-sign-in.ts'
import type { SigningKey } from './signing-key.ts'

/** Twelve hours, so that a token lasts for a whole day of demos. */
const LIFETIME_SECONDS = 12 * 3600

export interface EmbeddedIssuer {
  issuer: string
  keys: JWTVerifyGetKey
  handlers: Handlers<DemoRouteId>
  /** Its sign-in page. */
  signIn: ReturnType<typeof demoSignIn>
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
  const sign = ({ sub, email, ...claims }: { sub: string; email?: string | undefined }): Promise<string> => {
    const now = Math.floor(runtime.clock.now() / 1000)
    return new SignJWT({ ...claims, ...(email !== undefined && { email, email_verified: true }) })
      .setProtectedHeader({ alg: 'ES256', kid: key.publicJwk.kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(sub)
      .setIssuedAt(now)
      .setExpirationTime(now + LIFETIME_SECONDS)
      .sign(key.privateKey)
  }
  const bearer = { token_type: 'Bearer', expires_in: LIFETIME_SECONDS } as const
  const signIn = demoSignIn({
    clientId: audience,
    runtime,
    async issue(claims) {
      const token = await sign(claims)
      return { access_token: token, id_token: token, ...bearer }
    },
  })
  return {
    issuer,
    keys: createLocalJWKSet(jwks),
    signIn,
    handlers: {
      'demo.identity.token': async ({ body }) => ({ access_token: await sign(body), ...bearer }),
      'demo.credentials': () => Promise.resolve({ api_key: apiKey }),
      'demo.identity.keys': () => Promise.resolve({ keys: [{ ...key.publicJwk }] }),
      'demo.identity.configuration': () =>
        Promise.resolve({
          issuer,
          jwks_uri: addressUnder(issuer, '/.well-known/jwks.json'),
          authorization_endpoint: addressUnder(issuer, signIn.paths.authorize),
          token_endpoint: addressUnder(issuer, signIn.paths.token),
          token_endpoint_auth_methods_supported: ['none'],
          code_challenge_methods_supported: ['S256'],
          scopes_supported: ['openid', 'email'],
          response_types_supported: ['code'],
          grant_types_supported: ['authorization_code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
    },
  }
}
