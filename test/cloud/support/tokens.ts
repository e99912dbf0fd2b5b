import {
  createLocalJWKSet,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose'
import { mintSigningKey, signingKeyOf } from '../../../cloud/platform/identity/open-issuer.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'

export const ISSUER = 'http://issuer.test'
export const AUDIENCE = 'larder'

/** An identity issuer for tests, which can also sign invalid tokens. */
export interface TestIssuer {
  keys: JWTVerifyGetKey
  privateKey: CryptoKey
  publicJwk: JWK
  token(claims?: JWTPayload, options?: { alg?: string; key?: CryptoKey | Uint8Array }): Promise<string>
}

export async function testIssuer({ clock }: Runtime): Promise<TestIssuer> {
  const key = await signingKeyOf(await mintSigningKey())
  const { publicJwk } = key
  return {
    keys: createLocalJWKSet({ keys: [publicJwk] }),
    privateKey: key.privateKey,
    publicJwk,
    token(claims = {}, options = {}) {
      const now = Math.floor(clock.now() / 1000)
      const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', iat: now, exp: now + 3600, ...claims }
      return new SignJWT(payload)
        .setProtectedHeader({ alg: options.alg ?? 'ES256', kid: publicJwk.kid })
        .sign(options.key ?? key.privateKey)
    },
  }
}
