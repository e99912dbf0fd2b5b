import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { onTestFinished, vi } from 'vitest'
import { z } from 'zod'

const CLIENT = { id: 'shop-app', secret: 'a secret of the client of at least so many letters' }

export type Algorithm = 'ES256' | 'RS256'

/** A real OIDC issuer on its own port; `claims` defines its users. */
export interface OidcIssuer {
  issuer: string
  /** An access token of the issuer's token endpoint. */
  token(): Promise<string>
  /** Its keys; the signing key is first. */
  readonly keys: readonly JWK[]
  /** Restarts it with another key, in addition to the old ones or instead of them. */
  rotate(options?: { keepOld?: boolean }): Promise<void>
  /** Makes it unreachable, or reachable again at the same address. */
  stop(): void
  resume(): void
  /** Requested paths, except the token endpoint. */
  readonly asked: string[]
}

export interface OidcIssuerOptions {
  algorithm?: Algorithm
  audience?: string
  claims?: Record<string, unknown>
  lifetimeSeconds?: number
}

export async function oidcIssuer({
  algorithm = 'ES256',
  audience = 'larder',
  claims = {},
  lifetimeSeconds = 600,
}: OidcIssuerOptions = {}): Promise<OidcIssuer> {
  // It warns at its start that a store in memory is not meant for production.
  for (const method of ['warn', 'info'] as const) vi.spyOn(console, method).mockImplementation(() => {})
  const { Provider } = await import('oidc-provider')
  const asked: string[] = []
  let serve: RequestListener = () => {}
  let isUp = true
  const server = createServer((request, response) => {
    if (!isUp) {
      request.socket.destroy()
      return
    }
    if (request.method === 'GET') asked.push(request.url!)
    serve(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let keys: JWK[] = []

  async function begin(kept: JWK[]): Promise<void> {
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
    const fresh = await exportJWK(privateKey)
    keys = [{ ...fresh, kid: `key-${crypto.randomUUID()}`, alg: algorithm, use: 'sig' }, ...kept]
    const provider = new Provider(issuer, {
      jwks: { keys },
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: algorithm,
        },
      ],
      ttl: { ClientCredentials: lifetimeSeconds },
      extraTokenClaims: () => claims,
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => 'urn:larder',
          getResourceServerInfo: () => ({
            scope: '',
            audience,
            accessTokenFormat: 'jwt',
            accessTokenTTL: lifetimeSeconds,
            jwt: { sign: { alg: algorithm } },
          }),
        },
      },
    })
    const callback = provider.callback()
    serve = (request, response) => void callback(request, response)
  }

  await begin([])
  return {
    issuer,
    asked,
    get keys() {
      return keys
    },
    async token() {
      const answer = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa(`${CLIENT.id}:${encodeURIComponent(CLIENT.secret)}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials' }),
      })
      return z.object({ access_token: z.string() }).parse(await answer.json()).access_token
    },
    rotate: ({ keepOld = false } = {}) => begin(keepOld ? keys : []),
    stop: () => void (isUp = false),
    resume: () => void (isUp = true),
  }
}
