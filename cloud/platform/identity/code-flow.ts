import { hash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { z } from 'zod'
import type { Random } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import type { VerifiedIdentity, VerifyIdentity } from '../credentials/identity-token.ts'

/**
 * Sign-in by the authorization code flow (OpenID Connect Core §3.1) with PKCE (RFC 7636), state and nonce. The ID token
 * passes the same checks as the tokens of API calls.
 */
export interface CodeIssuer {
  clientId: string
  /** Where a browser of this service signs in, and the supported scopes. Throws `identity_unavailable`. */
  authorization(): Promise<{ endpoint: string; scopes: readonly string[] | undefined }>
  /** The answer of the token endpoint. Throws `identity_unavailable`, `invalid_token`. */
  exchange(form: URLSearchParams): Promise<unknown>
  /** Verifies an ID token. */
  verify: VerifyIdentity
}

/** A sign-in that has begun. */
export const PendingSignIn = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The path to which the browser returns. */
  returnTo: z.string(),
  redirectUri: z.string(),
  expiresAt: z.number(),
})
export type PendingSignIn = z.infer<typeof PendingSignIn>

const WANTED_SCOPES = ['openid', 'email', 'phone']

const secretOf = (random: Random): string => Buffer.from(random.bytes(32)).toString('base64url')

export const challengeOf = (verifier: string): string => hash('sha256', verifier, 'base64url')

/** The address of the issuer at which the browser signs in, and the sign-in to remember. */
export async function beginSignIn(
  issuer: CodeIssuer,
  random: Random,
  about: Pick<PendingSignIn, 'returnTo' | 'redirectUri' | 'expiresAt'>,
): Promise<{ url: string; pending: PendingSignIn }> {
  const { endpoint, scopes = ['openid', 'email'] } = await issuer.authorization()
  const pending = {
    ...about,
    state: secretOf(random),
    nonce: secretOf(random),
    verifier: secretOf(random),
  }
  const url = new URL(endpoint, about.redirectUri)
  const query = {
    response_type: 'code',
    client_id: issuer.clientId,
    redirect_uri: about.redirectUri,
    scope: WANTED_SCOPES.filter((scope) => scope === 'openid' || scopes.includes(scope)).join(' '),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: challengeOf(pending.verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return { url: url.href, pending }
}

const Tokens = z.object({ id_token: z.string() })

/** The person who has signed in. Throws `invalid_token`, `token_expired`, `identity_unavailable`. */
export async function finishSignIn(
  issuer: CodeIssuer,
  { state, nonce, verifier, redirectUri }: PendingSignIn,
  answer: URLSearchParams,
): Promise<VerifiedIdentity> {
  const code = answer.get('code')
  if (code === null || answer.get('state') !== state)
    throw new ApiError('invalid_token', 'The answer does not belong to this sign-in.')
  const tokens = Tokens.safeParse(
    await issuer.exchange(
      new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      }),
    ),
  )
  if (!tokens.success) throw new ApiError('invalid_token', 'The issuer has sent no ID token.')
  const { id_token: token } = tokens.data
  const identity = await issuer.verify(token)
  if (decodeJwt(token)['nonce'] !== nonce)
    throw new ApiError('invalid_token', 'The ID token does not belong to this sign-in.')
  return identity
}
