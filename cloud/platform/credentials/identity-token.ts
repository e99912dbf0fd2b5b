import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { BoundedMap } from '../bounded-map.ts'
import { defaultSettings } from '../settings/rule-settings.ts'
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
  /** How many tokens are kept whose signatures have been verified. */
  kept?: number
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

/** A token whose signature has been verified, and how its key is asked for. */
interface Verified {
  payload: JWTPayload
  key: unknown
  asked: Parameters<JWTVerifyGetKey>
  at: number
}

/**
 * Tokens of one issuer: RS256 or ES256 and nothing else; `iss, aud, exp, iat, sub` checked. What takes long is the signature:
 * where the issuer still has the very key that verified it, and the token has not expired, it is not verified again.
 */
export function identityVerifier(options: IdentityTokenOptions): VerifyIdentity {
  const { issuer, audience, keys, clock, kept = defaultSettings.identityTokens } = options
  const known = new BoundedMap<Verified>(kept)

  async function verify(token: string, now: number): Promise<JWTPayload> {
    let asked: Verified['asked'] | undefined
    const { payload, key } = await jwtVerify(token, (...asks) => keys(...(asked = asks)), {
      issuer,
      audience,
      algorithms: ['RS256', 'ES256'],
      requiredClaims: ['iss', 'aud', 'exp', 'iat', 'sub'],
      clockTolerance: TOLERANCE_SECONDS,
      currentDate: new Date(now),
    })
    known.set(token, { payload, key, asked: asked!, at: now })
    return payload
  }

  /** Where the clock was put back, or the token may have expired, all of it is checked again. */
  async function payloadOf(token: string, now: number): Promise<JWTPayload> {
    const before = known.get(token)
    if (!before) return verify(token, now)
    known.delete(token)
    const isCurrent = before.at <= now && now < before.payload.exp! * 1000
    if (!isCurrent || (await keys(...before.asked)) !== before.key) return verify(token, now)
    // The ones used last are kept.
    known.set(token, before)
    return before.payload
  }

  return async (token) => {
    const now = clock.now()
    try {
      const payload = await payloadOf(token, now)
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
