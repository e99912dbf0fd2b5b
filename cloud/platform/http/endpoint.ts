import { deprecationOf } from '../../../protocol/contract/headers.ts'
import { rateClasses, ratesOf, type RateClass, type Route } from '../../../protocol/contract/route.ts'
import type { RouteId } from '../../../protocol/contract/routes.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import type { Credential, IdentityCredential } from '../credentials/credential.ts'
import { keyIn } from '../credentials/explain.ts'
import { requireReach, type OwnedHub } from '../credentials/hub-access.ts'
import type { Authenticated, ResolveCredential } from '../credentials/resolve.ts'
import type { Media } from '../media/media.ts'
import { statement } from '../store/statement.ts'
import { answerOf, errorAnswer, send, type Answer, type RequestContext } from './answer.ts'
import { Reply, type HandlerInput } from './handler.ts'
import { fingerprintOf, idempotently, nameOf, type KeyedRequest } from './idempotency.ts'
import { rateHeaders, type RateLimiter } from './rate-limit.ts'
import { parseJson, type ReadBody } from './read-body.ts'
import { formRequestOf, readForm, type ReceivedForm } from './read-form.ts'
import { compressed, validated } from './web.ts'
import { idempotencyKeyOf, requireUtf8, validate, validateForm, type ParsedParts } from './validate.ts'

export interface EndpointParts {
  context: CloudContext
  readBody: ReadBody
  resolveCredential: ResolveCredential
  /** Whose a hub is. */
  readHub: (id: number) => Promise<OwnedHub | undefined>
  limiter: RateLimiter
  media: Media
  /** Refuses answers that are not as the contract says; for tests, which are there to find them. */
  checkResponses: boolean
}

/** A handler of any route: the table of handlers has its type checked already. */
export type AnyHandler = (input: HandlerInput<Route>) => Promise<unknown>

interface Endpoint extends EndpointParts {
  id: RouteId
  route: Route
  handler: AnyHandler
}

/** Serves one route. */
export function endpoint(id: RouteId, route: Route, handler: AnyHandler, parts: EndpointParts) {
  const self: Endpoint = { id, route, handler, ...parts }
  return (c: RequestContext): Promise<Response> => serve(self, c)
}

/**
 * The steps of a request, in the order of the contract (§3): credential → scope → rate limit → validation → hub access →
 * existence; the last is the handler's.
 */
async function serve(self: Endpoint, c: RequestContext): Promise<Response> {
  const { route } = self
  if (!isShared(route)) c.get('headers')['Cache-Control'] = 'no-store'
  if (route.deprecated) Object.assign(c.get('headers'), deprecationOf(route))
  const authenticated = await authenticate(self, c)
  requireScope(self, c, authenticated)
  takeAllowance(self, c, authenticated)
  const received = await receive(self, c)
  const parsed = parse(route, received)
  if (parsed instanceof Reply) return send(c, answerOf(route, parsed, self.checkResponses))
  const key = route.idempotent ? idempotencyKeyOf(c.req.header('Idempotency-Key')) : undefined
  const caller = await authorize(self, authenticated.credential, parsed)
  const { runtime, settings } = self.context
  const limits = { clock: runtime.clock, imagePixels: settings.imagePixels }
  const form = route.form && (await readForm(self.media, limits, formRequestOf(route.form, c)))
  try {
    const keyed = key === undefined ? undefined : keyedRequest(route, { received, key, caller, form })
    const input = inputOf(route, c, { received, parsed, keyed, caller, form })
    const answer = keyed === undefined ? await run(self, input) : await runOnce(self, input, keyed)
    return await send(c, await compressed(c, validated(route, answer, c.req.header('If-None-Match'))))
  } finally {
    // Removes the files that the handler's transaction did not keep.
    if (form) await self.media.release(form.files.map((file) => file.key))
  }
}

/** Whether all callers are answered alike. No cache keeps any other answer (RFC 9111 §3). */
const isShared = ({ auth, rate }: Route): boolean =>
  (auth.kind === 'none' || auth.kind === 'optional-identity') && rate !== 'lookup'

async function authenticate(self: Endpoint, c: RequestContext): Promise<Authenticated> {
  try {
    return await self.resolveCredential(self.route.auth, {
      apiKey: c.req.header('X-API-Key'),
      authorization: c.req.header('Authorization'),
      misplacedKey: () => misplacedKey(c),
      address: c.get('address'),
    })
  } catch (error) {
    // Without a caller there is no allowance to take from.
    addRateHeaders(self, c, 0)
    throw error
  }
}

function misplacedKey(c: RequestContext): string | undefined {
  const [header] = Object.entries(c.req.header()).find(([, value]) => keyIn(value)) ?? []
  if (header !== undefined) return `header ${header}`
  const [query] = Object.entries(c.req.query()).find(([, value]) => keyIn(value)) ?? []
  return query === undefined ? undefined : 'address, which logs keep'
}

function requireScope(self: Endpoint, c: RequestContext, authenticated: Authenticated): void {
  const { missing } = authenticated
  if (missing === null) return
  const [rate] = ratesOf(self.route)
  addRateHeaders(self, c, self.limiter.used(spenderOf(rate, c, authenticated), self.id))
  throw new ApiError('scope_missing', missing.message, { required_scope: missing.scope })
}

function takeAllowance(self: Endpoint, c: RequestContext, authenticated: Authenticated): void {
  for (const [index, rate] of ratesOf(self.route).entries()) {
    const { requests } = rateClasses[rate]
    if (requests === Infinity) continue
    const used = self.limiter.take(spenderOf(rate, c, authenticated), self.id, requests)
    if (index === 0 || used === null) addRateHeaders(self, c, used, rate)
    if (used === null) throw new ApiError('rate_limit_exceeded')
  }
}

/** Whose allowance a request takes from. */
const spenderOf = (rate: RateClass, c: RequestContext, { credential }: Authenticated): string =>
  rateClasses[rate].by === 'address' ? `address:${c.get('address')}` : credential.actor

function addRateHeaders(
  { route, context }: Endpoint,
  c: RequestContext,
  used: number | null,
  rate: RateClass = ratesOf(route)[0],
): void {
  const headers = rateHeaders(context.runtime.clock, rateClasses[rate].requests, used)
  Object.assign(c.get('headers'), headers)
}

/** A request's address and body, before anything in them is checked. */
interface Received {
  url: URL
  params: Record<string, string>
  text: string
  body: { present: boolean; value: unknown }
}

async function receive({ route, readBody }: Endpoint, c: RequestContext): Promise<Received> {
  // Nobody need read what nobody has signed.
  if (route.signedBy?.every((name) => c.req.header(name) === undefined))
    throw new ApiError('invalid_signature', `The header ${route.signedBy[0]} is missing.`)
  const isOwner = route.interface === 'owner'
  const text = route.body || route.rawBody ? await readBody(c.req.raw, isOwner || route.rawBody === true) : ''
  const json = route.body
    ? parseJson(text, c.req.header('Content-Type'), isOwner)
    : { present: false, value: undefined }
  const body = route.bodyOptional && !json.present ? { present: true, value: {} } : json
  return { url: new URL(c.req.url), params: c.req.param(), text, body }
}

/** Path, query and body as the route's schemas read them; or the answer of a route that reports what is wrong with a 200. */
function parse(route: Route, { url, params, body }: Received): ParsedParts | Reply<unknown> {
  try {
    requireUtf8(url)
    return validate(route, { params, query: url.searchParams, body })
  } catch (error) {
    if (!route.invalidBody || !(error instanceof ApiError)) throw error
    const { message, items = [] } = error
    const problems = items.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`)
    return new Reply(
      route.invalidBody(Object.fromEntries(url.searchParams), problems.join('; ') || message),
      {},
    )
  }
}

/** Checks access to the hub that the request names, and finds the user behind an identity. */
async function authorize(
  { route, context, readHub }: Endpoint,
  credential: Authenticated['credential'],
  { params, query }: ParsedParts,
): Promise<Credential> {
  const hub = route.hub === undefined ? undefined : (query?.[route.hub] ?? params?.[route.hub])
  if (credential.kind === 'api' && hub !== undefined) await requireReach(readHub, credential, hub as number)
  if (route.auth.kind !== 'user') return credential
  const identity = credential as IdentityCredential
  const [user] = await userOf(context.db.kysely, { identity: identity.identity })
  if (params?.['user_id'] !== undefined && params['user_id'] !== user?.id) throw new ApiError('forbidden')
  if (!user)
    throw new ApiError(
      'user_not_found',
      'The identity has no user yet: call POST /users/user/bootstrap first.',
    )
  return { ...identity, kind: 'user', userId: user.id }
}

const userOf = statement((q, { identity }: { identity: string }) =>
  q.selectFrom('users').select('id').where('identity', '=', identity),
)

interface Checked {
  received: Received
  parsed: ParsedParts
  keyed: KeyedRequest | undefined
  caller: Credential
  form: ReceivedForm | undefined
}

function inputOf(route: Route, c: RequestContext, checked: Checked): HandlerInput<Route> {
  const { received, parsed, keyed, caller, form } = checked
  return {
    ...(parsed as { params: undefined; query: undefined; body: undefined }),
    form: (form && { ...form, fields: validateForm(route, route.form!, form) }) as undefined,
    credential: caller,
    requestId: c.get('requestId'),
    idempotencyKey: keyed?.key,
    requestName: keyed && nameOf(keyed),
    rawBody: received.text,
    url: received.url,
    header: (name) => c.req.header(name),
  }
}

async function run(
  { route, handler, checkResponses }: Endpoint,
  input: HandlerInput<Route>,
): Promise<Answer> {
  const output = await handler(input)
  return answerOf(route, output instanceof Reply ? output : new Reply(output, {}), checkResponses)
}

function keyedRequest(
  route: Route,
  { received, key, caller, form }: Pick<Checked, 'received' | 'caller' | 'form'> & { key: string },
): KeyedRequest {
  const { url, text } = received
  const path = url.pathname.replace(/\/$/, '') + url.search
  return {
    caller: caller.actor,
    key,
    fingerprint: fingerprintOf(route.method, path, form?.fingerprint ?? text),
  }
}

/** Runs a request with an idempotency key, or repeats the answer that an earlier one with this key was given. */
function runOnce(self: Endpoint, input: HandlerInput<Route>, keyed: KeyedRequest): Promise<Answer> {
  return idempotently(self.context, keyed, async () => {
    try {
      const answer = await run(self, input)
      if (typeof answer.body !== 'string') throw new Error('a stream cannot be kept')
      return { ...answer, body: answer.body }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return errorAnswer(error, input.requestId)
    }
  })
}
