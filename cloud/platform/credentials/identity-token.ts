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
import { Email, PhoneNumber } from '../../../protocol/contract/fields.ts'

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

/** Rules for tokens with a valid signature. */
interface TokenRules {
  issuer: string
  /** Accepted values of `aud`. */
  audiences: readonly string[]
  /** Maximum difference between the issuer's clock and this one. */
  toleranceS: number
  /** `access` refuses tokens that are marked as ID tokens. */
  use: 'any' | 'access'
  /** Whether `role` counts. */
  trustsRoles: boolean
}

interface Refusal {
  code: 'invalid_token' | 'token_expired'
  /** For the log: a fixed sentence, without values from the token. */
  why: string
  /** The value that was refused. */
  found?: string
}

const invalid = (why: string, found?: unknown): Refusal => ({
  code: 'invalid_token',
  why,
  ...(found !== undefined && { found: typeof found === 'string' ? found : JSON.stringify(found) }),
})

/**
 * Checks a token after its signature was verified. Only `iss`, `aud`, `exp`, `nbf`, `sub` and the token's type decide.
 * `iat` and all other claims never cause a refusal. Returns undefined if the token is accepted.
 */
function refusalOf(
  { typ }: Pick<CompactJWSHeaderParameters, 'typ'>,
  payload: JWTPayload,
  nowMs: number,
  { issuer, audiences, toleranceS, use }: TokenRules,
): Refusal | undefined {
  const { iss, exp, sub } = payload
  const nbf: unknown = payload.nbf
  const nowS = nowMs / 1000
  if (iss !== issuer) return invalid('iss is another issuer', iss)
  if (!audiences.some((audience) => audiencesOf(payload).includes(audience)))
    return invalid('aud does not name this service', payload.aud ?? payload['client_id'])
  if (typeof exp !== 'number') return invalid('exp is not a time', exp)
  if (nbf !== undefined && nbf !== null && typeof nbf !== 'number') return invalid('nbf is not a time', nbf)
  if (typeof nbf === 'number' && nbf > nowS + toleranceS)
    return invalid('nbf is in the future', `${Math.ceil(nbf - nowS)} s ahead`)
  if (exp <= nowS - toleranceS)
    return { code: 'token_expired', why: 'exp has passed', found: `${Math.ceil(nowS - exp)} s ago` }
  if (!isSubject(sub)) return invalid('sub is not text of 1 to 255 characters')
  return refusalOfUse(typ, payload, use)
}

/** Cognito's access tokens name their client in place of an audience (AWS, "Verifying a JSON web token"). */
function audiencesOf({ aud, client_id, token_use }: JWTPayload): unknown[] {
  if (aud === undefined || aud === null) return token_use === 'access' ? [client_id] : []
  return Array.isArray(aud) ? aud : [aud]
}

const isSubject = (sub: unknown): boolean => isText(sub) && sub.length >= 1 && sub.length <= 255

/** The database stores neither NUL nor half of a surrogate pair. */
const isText = (claim: unknown): claim is string =>
  typeof claim === 'string' && !/[\0\p{Surrogate}]/u.test(claim)

/**
 * The use of a token: `token_use` in Cognito, the payload's `typ` in Keycloak, the header's `typ` in RFC 8725 §3.11. A
 * value of another type counts as absent.
 */
function refusalOfUse(
  typ: unknown,
  { token_use, typ: payloadTyp }: JWTPayload,
  allowed: TokenRules['use'],
): Refusal | undefined {
  const uses = [token_use, payloadTyp, typ]
    .filter((use) => typeof use === 'string')
    .map((use) => use.toLowerCase())
    .map((use) => use.replace(/^application\//, '').replace(/\+jwt$/, ''))
  const other = uses.find((use) => otherUses.includes(use))
  if (other !== undefined) return invalid('it is no access or ID token', other)
  if (allowed === 'access' && uses.includes('id')) return invalid('it is an ID token')
  return undefined
}

/** Uses of tokens that do not authenticate a user. */
const otherUses: readonly string[] = [
  'refresh',
  'offline',
  'logout',
  'secevent',
  'dpop',
  'client-authentication',
  'oauth-authz-req',
  'token-introspection',
]

const StoredEmail = Email.refine(isText)

/**
 * The optional claims of an accepted token. A claim that is null, empty or of another type is absent. Contacts must
 * match the schemas of request fields.
 */
function claimsOf(payload: JWTPayload, { trustsRoles }: Pick<TokenRules, 'trustsRoles'>): IdentityClaims {
  const phone = PhoneNumber.safeParse(payload['phone_number'])
  const email = StoredEmail.safeParse(payload['email'])
  const verified = payload['phone_number_verified'] ?? true
  return {
    phoneNumber: phone.success && isTrue(verified) ? phone.data : null,
    email: email.success ? email.data : null,
    emailVerified: email.success && isTrue(payload['email_verified']),
    anonymous: isTrue(payload['anonymous']) || isTrue(payload['is_anonymous']) || isFirebaseGuest(payload),
    roles: trustsRoles ? rolesOf(payload['role']) : [],
  }
}

/** Some issuers send booleans as text. */
const isTrue = (claim: unknown): boolean =>
  claim === true || (typeof claim === 'string' && claim.trim().toLowerCase() === 'true')

function isFirebaseGuest({ firebase }: JWTPayload): boolean {
  if (typeof firebase !== 'object' || firebase === null || !('sign_in_provider' in firebase)) return false
  return firebase.sign_in_provider === 'anonymous'
}

/** Keycloak's mappers send lists. */
const rolesOf = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((role) => typeof role === 'string' && role !== '')
