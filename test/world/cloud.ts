import { seedHubs } from './seeds.ts'
import { ErrorBody } from '../../protocol/contract/errors.ts'
import { routes, type RouteId, type ServiceRouteId } from '../../protocol/contract/routes.ts'
import { silentLog, type Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { Scope } from '../../protocol/model/scopes.ts'
import { issueApiKey, type HubSelection } from '../../cloud/platform/credentials/api-keys.ts'
import { identityVerifier, type VerifyIdentity } from '../../cloud/platform/credentials/identity-token.ts'
import { credentialResolver } from '../../cloud/platform/credentials/resolve.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { createApp, type App, type Served } from '../../cloud/platform/http/app.ts'
import type { Handlers } from '../../cloud/platform/http/handler.ts'
import { Health } from '../../cloud/platform/http/health.ts'
import { memoryRateLimiter, type RateLimiter } from '../../cloud/platform/http/rate-limit.ts'
import { hubHandlers } from '../../cloud/operations/hubs/hubs.ts'
import type { Media } from '../../cloud/platform/media/media.ts'
import type { MediaStore } from '../../cloud/platform/media/store.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { userHandlers } from '../../cloud/people/users/handlers.ts'
import { profileHandlers } from '../../cloud/people/users/profile.ts'
import { emptySqlite } from './database.ts'
import { testMedia } from '../cloud/support/media.ts'
import { virtualRuntime, type VirtualRuntime } from './clock.ts'
import { AUDIENCE, ISSUER, testIssuer, type TestIssuer } from '../cloud/support/tokens.ts'
import { testContext } from './context.ts'

/** The HTTP interface over an empty database with one owner's hub 1 and another owner's hub 2. */
export interface TestCloud {
  app: App
  context: CloudContext
  runtime: VirtualRuntime
  issuer: TestIssuer
  key: (
    scopes: Scope[],
    options?: { hubs?: HubSelection; ownerId?: number; expiresAt?: number },
  ) => Promise<string>
  /** Sends a request; returns its answer as JSON. */
  call: (method: string, path: string, options?: CallOptions) => Promise<CallAnswer>
}

export interface CallOptions {
  key?: string
  token?: string
  headers?: Record<string, string>
  body?: unknown
  /** A multipart form instead of a body. */
  form?: readonly FormPart[]
}

export type FormPart = readonly [name: string, value: string | File]

export interface CallAnswer {
  status: number
  headers: Headers
  /** The body: parsed if it is JSON, otherwise its text. */
  json: unknown
}

export interface CloudOptions {
  handlers?: Partial<Handlers<RouteId>>
  /** Handlers that need the context. */
  handlersOf?: (context: CloudContext, media: Media) => Partial<Handlers<RouteId>>
  /** Store of uploaded files; default: a shared folder. */
  mediaStore?: MediaStore
  db?: CloudDatabase
  log?: Log
  corsOrigins?: readonly string[]
  allowedHosts?: readonly string[]
  /** Whether callers use https. */
  isSecure?: boolean
  hstsSubdomains?: boolean
  limiter?: (context: CloudContext) => RateLimiter
  health?: (context: CloudContext) => Health
  onServed?: (served: Served) => void
  settings?: Partial<CloudContext['settings']>
  /** Addresses of callers; default: one address. */
  addressOf?: () => string
  /** Replaces the verifier of `issuer`. */
  verifyIdentity?: VerifyIdentity
}

export async function openCloud(options: CloudOptions = {}): Promise<TestCloud> {
  const runtime = virtualRuntime()
  const db = options.db ?? openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const made = testContext(db, runtime, { log: options.log ?? silentLog })
  const context = { ...made, settings: { ...made.settings, ...options.settings } }
  await seedHubs(db)
  const issuer = await testIssuer(runtime)
  const verify =
    options.verifyIdentity ??
    identityVerifier({
      issuer: ISSUER,
      audience: AUDIENCE,
      keys: issuer.keys,
      clock: runtime.clock,
    })
  const absent = Object.fromEntries(
    Object.keys(routes).map((id) => [id, () => Promise.reject(new Error(`${id} is not under test`))]),
  ) as unknown as Handlers<ServiceRouteId>
  const media = testMedia(context, options.mediaStore)
  const app = createApp({
    context,
    resolveCredential: credentialResolver(context, verify),
    limiter: options.limiter?.(context) ?? memoryRateLimiter(runtime.clock),
    media,
    checkResponses: true,
    addressOf: options.addressOf ?? (() => '192.0.2.1'),
    ...(options.onServed && { onServed: options.onServed }),
    health: options.health?.(context) ?? readyNow(runtime.clock),
    isSecure: options.isSecure ?? false,
    hstsSubdomains: options.hstsSubdomains ?? false,
    corsOrigins: options.corsOrigins ?? [],
    allowedHosts: options.allowedHosts ?? [],
    handlers: {
      ...absent,
      ...hubHandlers(context),
      ...userHandlers(context, verify, media),
      ...profileHandlers(context, media),
      ...options.handlers,
      ...options.handlersOf?.(context, media),
    },
  })
  return {
    app,
    context,
    runtime,
    issuer,
    async key(scopes, { hubs = '*', ownerId = 1, expiresAt } = {}) {
      const request = { name: 'test', ownerId, scopes, hubs, expiresAt: expiresAt ?? null }
      return (await issueApiKey(db.kysely, runtime, request)).key
    },
    async call(method, path, { key, token, headers = {}, body, form } = {}) {
      const answer = await app.request(path, {
        method,
        headers: {
          ...(key !== undefined && { 'X-API-Key': key }),
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(form && { body: formData(form) }),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await answer.text()
      const isJson = answer.headers.get('Content-Type')?.startsWith('application/json')
      return {
        status: answer.status,
        headers: answer.headers,
        json: isJson ? (JSON.parse(text) as unknown) : text,
      }
    },
  }
}

const readyNow = (clock: Clock): Health => {
  const health = new Health(clock, {})
  health.phase = 'ready'
  return health
}

function formData(parts: readonly FormPart[]): FormData {
  const data = new FormData()
  for (const [name, value] of parts) data.append(name, value)
  return data
}

/** The error of an answer; checks its shape. */
export const errorOf = (answer: CallAnswer): ErrorBody => ErrorBody.parse(answer.json)
