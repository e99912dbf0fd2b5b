import {
  compactVerify,
  decodeJwt,
  errors,
  type CompactJWSHeaderParameters,
  type CompactVerifyGetKey,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { BoundedMap } from '../bounded-map.ts'
import { defaultLimits } from '../settings/limits.ts'
import type { IdentityClaims } from './credential.ts'
import { claimsOf, refusalOf, type Refusal, type TokenRules } from './identity-claims.ts'

export interface VerifiedIdentity {
  identity: string
  claims: IdentityClaims
}

/** Verifies an identity token; throws `invalid_token`, `token_expired`, `identity_unavailable`. */
export type VerifyIdentity = (token: string) => Promise<VerifiedIdentity>

export interface IdentityTokenOptions
  extends Pick<TokenRules, 'issuer'>, Partial<Omit<TokenRules, 'issuer'>> {
  /** An audience, or several separated by commas. */
  audience: string
  /** The issuer's keys. Throws `identity_unavailable` while they cannot be fetched or may be stale. */
  keys: JWTVerifyGetKey
  clock: Clock
  /** Maximum number of cached tokens with a verified signature. */
  kept?: number
}

/** A token with a verified signature. */
interface Verified {
  header: CompactJWSHeaderParameters
  payload: JWTPayload
  key: unknown
}

/** A verified token, and the lookup of its key. */
interface Cached extends Verified {
  asked: Parameters<JWTVerifyGetKey>
}

/** Refuses a token. The log gets the reason. */
class RefusedToken extends ApiError {
  constructor({ code, why, found }: Refusal) {
    super(code)
    this.why = found === undefined ? { why } : { why, found }
  }
}

/**
 * Verifies tokens of one issuer, signed with RS256 or ES256. Verifying a signature is slow, so it is skipped for a
 * cached token while the issuer still has its key. The claims are checked at every call.
 */
export function identityVerifier(options: IdentityTokenOptions): VerifyIdentity {
  const { keys, clock, kept = defaultLimits.rules.identityTokens } = options
  const rules: TokenRules = {
    issuer: options.issuer,
    audiences: options.audience.split(',').map((audience) => audience.trim()),
    toleranceS: options.toleranceS ?? defaultLimits.rules.identityClockToleranceS,
    use: options.use ?? 'any',
    trustsRoles: options.trustsRoles ?? true,
  }
  const known = new BoundedMap<Cached>(kept)

  async function verify(token: string): Promise<Verified> {
    let asked: Cached['asked'] | undefined
    const getKey: CompactVerifyGetKey = async (...asks) => {
      const key = await keys(...asks)
      asked = asks
      return key
    }
    const { payload, protectedHeader, key } = await verifySignature(token, getKey)
    // RFC 7797 §7: a JWT's payload is always encoded.
    if (protectedHeader.crit?.includes('b64')) throw new errors.JWTInvalid('the payload is not encoded')
    const verified = { header: protectedHeader, payload: parsePayload(payload), key }
    if (asked) known.set(token, { ...verified, asked })
    return verified
  }

  async function verifiedOf(token: string): Promise<Verified> {
    const before = known.get(token)
    if (!before) return verify(token)
    known.delete(token)
    if ((await keys(...before.asked)) !== before.key) return verify(token)
    // Moves the token to the end, so that the cache evicts the least recently used one.
    known.set(token, before)
    return before
  }

  return async (token) => {
    try {
      const { header, payload } = await verifiedOf(token)
      const refusal = refusalOf(header, payload, clock.now(), rules)
      if (refusal) throw new RefusedToken(refusal)
      return { identity: payload.sub!, claims: claimsOf(payload, rules) }
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error
      throw new RefusedToken({ code: 'invalid_token', why: reasonOf(error) })
    }
  }
}

/** Verifies tokens that name the former issuer with its keys, and all other tokens with `verify`. */
export const verifierByIssuer =
  (verify: VerifyIdentity, former: { issuer: string; verify: VerifyIdentity }): VerifyIdentity =>
  (token) => {
    let issuer: string | undefined
    try {
      issuer = decodeJwt(token).iss
    } catch {
      // `verify` refuses it.
    }
    const isFormer = issuer?.replace(/\/$/, '') === former.issuer.replace(/\/$/, '')
    return (isFormer ? former.verify : verify)(token)
  }

const ALGORITHMS = { algorithms: ['RS256', 'ES256'] }

/** A token without a key id may be signed with any key of the issuer. Each key is tried. */
async function verifySignature(token: string, getKey: CompactVerifyGetKey) {
  try {
    return await compactVerify(token, getKey, ALGORITHMS)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    for await (const key of error)
      try {
        return { ...(await compactVerify(token, key, ALGORITHMS)), key }
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    throw new errors.JWSSignatureVerificationFailed(undefined, { cause: error })
  }
}

function parsePayload(bytes: Uint8Array): JWTPayload {
  try {
    const payload: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (typeof payload === 'object' && payload !== null && !Array.isArray(payload))
      return payload as JWTPayload
  } catch {
    // The refusal below reports it.
  }
  throw new errors.JWTInvalid('the payload is no JSON object')
}

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm is not RS256 or ES256'
  if (error instanceof errors.JWKSNoMatchingKey) return 'the issuer has no such key'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong'
  return 'it is malformed'
}
