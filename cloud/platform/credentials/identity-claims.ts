import type { CompactJWSHeaderParameters, JWTPayload } from 'jose'
import { Email, PhoneNumber } from '../../../protocol/contract/fields.ts'
import type { IdentityClaims } from './credential.ts'

/** Rules for tokens with a valid signature. */
export interface TokenRules {
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

export interface Refusal {
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
export function refusalOf(
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
export function claimsOf(
  payload: JWTPayload,
  { trustsRoles }: Pick<TokenRules, 'trustsRoles'>,
): IdentityClaims {
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
