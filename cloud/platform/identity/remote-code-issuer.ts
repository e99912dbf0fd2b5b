import type { Log } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import type { VerifyIdentity } from '../credentials/identity-token.ts'
import type { CodeIssuer } from './code-flow.ts'
import { discover, identityFetch, type Discovery } from './remote-keys.ts'

/** Maximum age of the issuer's description. */
const MAX_AGE_MS = 600_000

/** The configured issuer, at which people sign in. */
export function remoteCodeIssuer(options: {
  issuer: string
  clientId: string
  /** Absent for a public client, which proves itself by PKCE only. */
  clientSecret?: string | undefined
  verify: VerifyIdentity
  clock: Clock
  log: Log
}): CodeIssuer {
  const { issuer, clientId, clientSecret, verify, clock, log } = options
  let known: { description: Discovery; at: number } | undefined

  async function describe(): Promise<Discovery> {
    if (known && clock.monotonic() - known.at < MAX_AGE_MS) return known.description
    const description = await discover(issuer).catch(unavailable)
    known = { description, at: clock.monotonic() }
    return description
  }

  function unavailable(error: unknown): never {
    log.warn({ err: error, issuer }, 'the issuer does not answer a sign-in')
    throw new ApiError('identity_unavailable')
  }

  return {
    clientId,
    verify,
    async authorization() {
      const { authorization_endpoint: endpoint, scopes_supported: scopes } = await describe()
      return endpoint === undefined
        ? unavailable(new Error('no authorization_endpoint'))
        : { endpoint, scopes }
    },
    async exchange(form) {
      const { token_endpoint: endpoint, token_endpoint_auth_methods_supported: methods } = await describe()
      if (endpoint === undefined) return unavailable(new Error('no token_endpoint'))
      // OpenID Connect Discovery §3: without a list the method is client_secret_basic.
      const isBasic = clientSecret !== undefined && (methods ?? [BASIC]).includes(BASIC)
      if (!isBasic) form.set('client_id', clientId)
      if (clientSecret !== undefined && !isBasic) form.set('client_secret', clientSecret)
      const answer = await identityFetch(endpoint, {
        method: 'POST',
        body: form,
        headers: isBasic ? { Authorization: `Basic ${basic(clientId, clientSecret)}` } : {},
      }).catch(unavailable)
      if (answer.status >= 500) return unavailable(new Error(`${endpoint} answered ${answer.status}`))
      if (answer.ok) return answer.json().catch(unavailable)
      log.warn({ issuer, status: answer.status }, 'the issuer refused the code of a sign-in')
      throw new ApiError('invalid_token', 'The issuer refused the code.')
    },
  }
}

const BASIC = 'client_secret_basic'

/** RFC 6749 §2.3.1: both parts are form-encoded first. */
const basic = (id: string, secret: string): string =>
  Buffer.from([id, secret].map(formEncoded).join(':')).toString('base64')
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
