import type { Log } from '../../../protocol/model/log.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import {
  identityVerifier,
  verifierByIssuer,
  type IdentityTokenOptions,
  type VerifyIdentity,
} from '../credentials/identity-token.ts'
import type { CloudConfig } from '../settings/config.ts'
import type { CodeIssuer } from './code-flow.ts'
import { remoteKeys, discover, identityFetch, type Discovery } from './remote-keys.ts'
import {
  createLocalJWKSet,
  SignJWT,
  type JWTVerifyGetKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
} from 'jose'
import type { DemoRouteId } from '../../../protocol/contract/routes.ts'
import { addressUnder } from '../public-url.ts'
import type { Handlers } from '../http/handler.ts'
import { demoSignIn } from './demo-sign-in.ts'
import { ApiError } from '../api-error.ts'
import { join } from 'node:path'
import { z } from 'zod'
import { storeFirst, readStored, type Say } from '../settings/stored-file.ts'

/** The configured identity issuer, or the embedded one with its routes. */
export async function openIssuer(config: CloudConfig, baseUrl: string, runtime: Runtime, log: Log) {
  const { clock } = runtime
  const say = (sentence: string): void => log.warn({}, sentence)
  const audience = config.IDENTITY_AUDIENCE
  const parts = { refetchMs: config.limits.rules.identityRefetchMs, clock, log }
  const issuer =
    config.IDENTITY_ISSUER === undefined
      ? {
          ...createEmbeddedIssuer({
            issuer: baseUrl,
            audience: audience.split(',')[0]!.trim(),
            key: await ensureSigningKey(config.DATA_DIR, say),
            runtime,
            apiKey: config.DOCS_API_KEY,
          }),
          check: undefined,
        }
      : outside(config.IDENTITY_ISSUER[0], config.IDENTITY_JWKS_URL, parts)
  const rules = {
    clock,
    kept: config.limits.rules.identityTokens,
    toleranceS: config.limits.rules.identityClockToleranceS,
    trustsRoles: config.IDENTITY_ROLES,
  }
  const verifierOf = ({ issuer, keys }: Pick<IdentityTokenOptions, 'issuer' | 'keys'>) =>
    identityVerifier({ ...rules, issuer, keys, audience, use: config.IDENTITY_TOKEN_USE })
  const former = config.IDENTITY_ISSUER?.[1]
  const verify = verifierOf(issuer)
  return {
    verify:
      former === undefined
        ? verify
        : verifierByIssuer(verify, { issuer: former, verify: verifierOf(outside(former, undefined, parts)) }),
    check: issuer.check,
    handlers: issuer.handlers,
    /** Absent: nobody can sign in in a browser. */
    signIn: codeIssuer(
      config,
      issuer,
      (clientId) =>
        identityVerifier({ ...rules, issuer: issuer.issuer, keys: issuer.keys, audience: clientId }),
      {
        clock,
        log,
      },
    ),
    site: issuer.signIn?.site ?? [],
  }
}

function codeIssuer(
  { IDENTITY_CLIENT_ID: clientId, IDENTITY_CLIENT_SECRET: clientSecret }: CloudConfig,
  { issuer, signIn }: { issuer: string; signIn: EmbeddedIssuer['signIn'] | undefined },
  verifierFor: (clientId: string) => VerifyIdentity,
  parts: { clock: Clock; log: Log },
): CodeIssuer | undefined {
  if (signIn) return { ...signIn, verify: verifierFor(signIn.clientId) }
  if (clientId === undefined) return undefined
  return remoteCodeIssuer({ issuer, clientId, clientSecret, verify: verifierFor(clientId), ...parts })
}

function outside(
  issuer: string,
  jwksUrl: string | undefined,
  parts: { refetchMs: number; clock: Clock; log: Log },
) {
  const keys = remoteKeys({ issuer, jwksUrl, ...parts })
  return { issuer, keys, check: () => keys.check(), handlers: undefined, signIn: undefined }
}

/** Twelve hours, so that a token lasts for a whole day of demos. */
const LIFETIME_SECONDS = 12 * 3600

export interface EmbeddedIssuer {
  issuer: string
  keys: JWTVerifyGetKey
  handlers: Handlers<DemoRouteId>
  /** Its sign-in page. */
  signIn: ReturnType<typeof demoSignIn>
}

/** Issues identity tokens to any caller, for demos and tests. Production refuses to start with it. */
export function createEmbeddedIssuer(options: {
  issuer: string
  audience: string
  key: SigningKey
  runtime: Runtime
  /** An owner's API key for people who try the demo. */
  apiKey?: string | undefined
}): EmbeddedIssuer {
  const { issuer, audience, key, runtime, apiKey = null } = options
  const jwks = { keys: [key.publicJwk] }
  const sign = ({ sub, email, ...claims }: { sub: string; email?: string | undefined }): Promise<string> => {
    const now = Math.floor(runtime.clock.now() / 1000)
    return new SignJWT({ ...claims, ...(email !== undefined && { email, email_verified: true }) })
      .setProtectedHeader({ alg: 'ES256', kid: key.publicJwk.kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(sub)
      .setIssuedAt(now)
      .setExpirationTime(now + LIFETIME_SECONDS)
      .sign(key.privateKey)
  }
  const bearer = { token_type: 'Bearer', expires_in: LIFETIME_SECONDS } as const
  const signIn = demoSignIn({
    clientId: audience,
    runtime,
    async issue(claims) {
      const token = await sign(claims)
      return { access_token: token, id_token: token, ...bearer }
    },
  })
  return {
    issuer,
    keys: createLocalJWKSet(jwks),
    signIn,
    handlers: {
      'demo.identity.token': async ({ body }) => ({ access_token: await sign(body), ...bearer }),
      'demo.credentials': () => Promise.resolve({ api_key: apiKey }),
      'demo.identity.keys': () => Promise.resolve({ keys: [{ ...key.publicJwk }] }),
      'demo.identity.configuration': () =>
        Promise.resolve({
          issuer,
          jwks_uri: addressUnder(issuer, '/.well-known/jwks.json'),
          authorization_endpoint: addressUnder(issuer, signIn.paths.authorize),
          token_endpoint: addressUnder(issuer, signIn.paths.token),
          token_endpoint_auth_methods_supported: ['none'],
          code_challenge_methods_supported: ['S256'],
          scopes_supported: ['openid', 'email'],
          response_types_supported: ['code'],
          grant_types_supported: ['authorization_code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
    },
  }
}

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

/** An ES256 key pair. Its id is its thumbprint, so ids are unique. */
export interface SigningKey {
  privateKey: CryptoKey
  publicJwk: JWK & { kid: string }
}

const StoredKey = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  d: z.string(),
})

export async function mintSigningKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return exportJWK(privateKey)
}

export async function signingKeyOf(jwk: JWK): Promise<SigningKey> {
  const { d: _, ...publicPart } = StoredKey.parse(jwk)
  return {
    privateKey: (await importJWK({ ...jwk, alg: 'ES256' }, 'ES256')) as CryptoKey,
    publicJwk: {
      ...publicPart,
      kid: await calculateJwkThumbprint(publicPart),
      alg: 'ES256',
      use: 'sig',
    },
  }
}

/** Reads the key from a file in a folder; creates it if it is absent. */
export async function ensureSigningKey(folder: string, say: Say): Promise<SigningKey> {
  const path = join(folder, 'identity-key.json')
  const text = readStored(path) ?? storeFirst(path, JSON.stringify(await mintSigningKey()), say)
  return signingKeyOf(StoredKey.parse(JSON.parse(text)))
}
