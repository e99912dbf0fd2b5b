import { errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import type { IdentityClaims } from './credential.ts'

export interface VerifiedIdentity {
  identity: string
  claims: IdentityClaims
}

/** Verifies an identity token; throws `invalid_token`, `token_expired`, `identity_unavailable`. */
export type VerifyIdentity = (token: string) => Promise<VerifiedIdentity>

export interface IdentityTokenOptions {
  issuer: string
  audience: string
  /** The issuer's keys. Throws `identity_unavailable` while they cannot be fetched: the token is not at fault. */
  keys: JWTVerifyGetKey
  clock: Clock
}

/** By how much the issuer's clock may differ from ours. */
const TOLERANCE_SECONDS = 5

const Claims = z.object({
  sub: z.string().min(1).max(255),
  iat: z.number(),
  phone_number: z.string().optional(),
  phone_number_verified: z.boolean().default(true),
  email: z.string().toLowerCase().optional(),
  email_verified: z.boolean().default(false),
  anonymous: z.boolean().default(false),
  role: z.string().optional(),
})

/** Tokens of one issuer: RS256 or ES256 and nothing else; `iss, aud, exp, iat, sub` checked. */
export function identityVerifier({ issuer, audience, keys, clock }: IdentityTokenOptions): VerifyIdentity {
  return async (token) => {
    const now = clock.now()
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ['RS256', 'ES256'],
        requiredClaims: ['iss', 'aud', 'exp', 'iat', 'sub'],
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: new Date(now),
      })
      const claims = Claims.safeParse(payload)
      if (!claims.success || claims.data.iat > now / 1000 + TOLERANCE_SECONDS)
        throw new ApiError('invalid_token')
      return {
        identity: claims.data.sub,
        claims: {
          phoneNumber: claims.data.phone_number_verified ? (claims.data.phone_number ?? null) : null,
          email: claims.data.email ?? null,
          emailVerified: claims.data.email_verified,
          anonymous: claims.data.anonymous,
          role: claims.data.role ?? null,
        },
      }
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw new ApiError('token_expired')
      if (error instanceof errors.JOSEError) throw new ApiError('invalid_token')
      throw error
    }
  }
}
