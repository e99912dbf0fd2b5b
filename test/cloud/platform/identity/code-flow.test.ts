import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { identityVerifier } from '../../../../cloud/platform/credentials/identity-token.ts'
import { beginSignIn, finishSignIn } from '../../../../cloud/platform/identity/code-flow.ts'
import { remoteCodeIssuer } from '../../../../cloud/platform/identity/open-issuer.ts'
import { remoteKeys } from '../../../../cloud/platform/identity/remote-keys.ts'

const clientId = 'larder-web'
const clientSecret = 'a secret: of the client, of at least so many letters'
const redirectUri = 'http://127.0.0.1:8080/session/callback'
const { clock, random } = systemRuntime()

/** A real issuer with a page for the login. It requires PKCE. */
async function openProvider(method: 'client_secret_basic' | 'client_secret_post'): Promise<string> {
  for (const quiet of ['warn', 'info'] as const) vi.spyOn(console, quiet).mockImplementation(() => {})
  const { Provider } = await import('oidc-provider')
  let serve: RequestListener = () => {}
  const server = createServer((request, response) => serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', alg: 'ES256', use: 'sig' }] },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: method,
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientAuthMethods: [method],
    claims: { email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@example.org`, email_verified: true }),
    }),
  })
  const callback = provider.callback()
  serve = (request, response) => void callback(request, response)
  return issuer
}

/** Logs in at the issuer's page and consents. Returns the answer for the service. */
async function logIn(url: string): Promise<URLSearchParams> {
  const cookies = new Map<string, string>()
  let at = url
  let form: Record<string, string> | undefined
  for (let step = 0; step < 12; step += 1) {
    const answer = await fetch(at, {
      redirect: 'manual',
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    form = undefined
    const location = answer.headers.get('Location')
    if (location?.startsWith(redirectUri)) return new URL(location).searchParams
    if (location) at = new URL(location, at).href
    else {
      const prompt = /name="prompt" value="(\w+)"/.exec(await answer.text())?.[1]
      if (prompt === undefined) throw new Error(`${at} answered ${answer.status} without a form`)
      form = { prompt, ...(prompt === 'login' && { login: 'ada', password: 'any' }) }
    }
  }
  throw new Error('the login does not end')
}

test.each(['client_secret_basic', 'client_secret_post'] as const)(
  'a person signs in at a real issuer that wants the method %s, and a changed state, nonce or verifier is refused',
  async (method) => {
    const issuer = await openProvider(method)
    const verify = identityVerifier({
      issuer,
      audience: clientId,
      keys: remoteKeys({ issuer, clock, log: silentLog }),
      clock,
    })
    const parts = { issuer, clientId, clientSecret, verify, clock, log: silentLog }
    const client = remoteCodeIssuer(parts)
    const begin = () =>
      beginSignIn(client, random, { returnTo: '/shop/1', redirectUri, expiresAt: clock.now() + 60_000 })
    const { url, pending } = await begin()
    expect(await finishSignIn(client, pending, await logIn(url))).toMatchObject({
      identity: 'ada',
      claims: { email: 'ada@example.org', emailVerified: true, anonymous: false },
    })
    for (const part of ['state', 'nonce', 'verifier'] as const) {
      const other = await begin()
      const answer = await logIn(other.url)
      const changed = { ...other.pending, [part]: 'x'.repeat(43) }
      await expect(finishSignIn(client, changed, answer)).rejects.toMatchObject({ code: 'invalid_token' })
    }
    const stranger = remoteCodeIssuer({ ...parts, clientSecret: 'wrong' })
    const last = await begin()
    await expect(finishSignIn(stranger, last.pending, await logIn(last.url))).rejects.toMatchObject({
      code: 'invalid_token',
    })
  },
  60_000,
)

test('a sign-in at an issuer that does not answer is 503', async () => {
  const issuer = 'http://127.0.0.1:9'
  const verify = () => Promise.reject(new Error('not reached'))
  const client = remoteCodeIssuer({ issuer, clientId, verify, clock, log: silentLog })
  await expect(
    beginSignIn(client, random, { returnTo: '/', redirectUri, expiresAt: 0 }),
  ).rejects.toMatchObject({ code: 'identity_unavailable' })
})
