import { errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { CloudSettings } from '../settings/settings.ts'
import type { IdentityClaims } from './credential.ts'
import { digestOf } from './secrets.ts'

export interface VerifiedIdentity {
  identity: string
  claims: IdentityClaims
}

/** Verifies an identity token; throws `invalid_token`, `token_expired`, `identity_unavailable`. */
export type VerifyIdentity = (token: string) => Promise<VerifiedIdentity>

export type IssuerKeys = JWTVerifyGetKey & {
  /** Another number once they may be other keys than before; absent where they never are. */
  generation?(): number
}

export interface IdentityTokenOptions {
  issuer: string
  audience: string
  /** The issuer's keys. Throws `identity_unavailable` while they cannot be fetched: the token is not at fault. */
  keys: IssuerKeys
  clock: Clock
  settings: Pick<CloudSettings, 'tokensKeptMs' | 'tokensKept'>
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

/** A token that was genuine when it was verified. */
interface KeptToken {
  verified: VerifiedIdentity
  verifiedAt: number
  /** Of the issuer's keys. */
  generation: number
  /** Seconds of the issuer's clock. */
  iat: number
  nbf: number
  exp: number
}

/**
 * Tokens of one issuer: RS256 or ES256 and nothing else; `iss, aud, exp, iat, sub` checked. One that was genuine is believed
 * for a while without its signature being computed again (`tokensKeptMs`), never beyond its own time, and as long as the keys of
 * the issuer are the same. Kept are digests: from them nobody has a token.
 */
export function identityVerifier(options: IdentityTokenOptions): VerifyIdentity {
  const { clock, settings } = options
  const known = new BoundedMap<KeptToken>(settings.tokensKept)
  const generationOf = (): number => options.keys.generation?.() ?? 0
  const isGood = ({ verifiedAt, generation, iat, nbf, exp }: KeptToken): boolean => {
    const now = clock.now() / 1000
    return (
      clock.monotonic() - verifiedAt < settings.tokensKeptMs &&
      generation === generationOf() &&
      now - TOLERANCE_SECONDS < exp &&
      Math.max(iat, nbf) <= now + TOLERANCE_SECONDS
    )
  }
  return async (token) => {
    const digest = digestOf(token)
    const kept = known.get(digest)
    if (kept && isGood(kept)) return kept.verified
    // Of before: should the keys become others meanwhile, it is verified anew.
    const generation = generationOf()
    const found = { ...(await verify(options, token)), generation }
    known.set(digest, found)
    return found.verified
  }
}

async function verify(
  { issuer, audience, keys, clock }: IdentityTokenOptions,
  token: string,
): Promise<Omit<KeptToken, 'generation'>> {
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
      verified: {
        identity: claims.data.sub,
        claims: {
          phoneNumber: claims.data.phone_number_verified ? (claims.data.phone_number ?? null) : null,
          email: claims.data.email ?? null,
          emailVerified: claims.data.email_verified,
          anonymous: claims.data.anonymous,
          role: claims.data.role ?? null,
        },
      },
      verifiedAt: clock.monotonic(),
      iat: claims.data.iat,
      nbf: payload.nbf ?? 0,
      exp: payload.exp!,
    }
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw new ApiError('token_expired')
    if (error instanceof errors.JOSEError) throw new ApiError('invalid_token')
    throw error
  }
}
