import { deprecationOf } from '../../../protocol/contract/headers.ts'
import { ratesOf, type Rate, type RateClasses, type Route } from '../../../protocol/contract/route.ts'
import type { HttpBindings } from '@hono/node-server'
import type { RouteId } from '../../../protocol/contract/routes.ts'
import type { Holder } from '../../../protocol/model/budget.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import type { Credential, IdentityCredential } from '../credentials/credential.ts'
import { keyIn } from '../credentials/explain.ts'
import { requireBooks, requireInService, requireReach, type OwnedHub } from '../credentials/hub-access.ts'
import {
  actorAt,
  type Authenticated,
  type Presented,
  type ResolveCredential,
} from '../credentials/resolve.ts'
import { holderOf, networkOf, type Budgets } from '../limits/budgets.ts'
import { heldStream, watchedStream } from '../limits/relayed-stream.ts'
import type { SpentTime } from '../limits/spent-time.ts'
import type { StoredAnswers } from '../limits/stored-answers.ts'
import type { Media } from '../media/media.ts'
import { statement } from '../store/statement.ts'
import { answerOf, errorAnswer, send, type Answer, type Call, type Headers } from './answer.ts'
import { Reply, type HandlerInput, type Memento } from './handler.ts'
import { fingerprintOf, idempotently, type KeyedRequest, type Made } from './idempotency.ts'
import { allowanceNow, type RateLimiter } from './rate-limit.ts'
import type { ReadBody } from './read-body.ts'
import {
  NO_BODY,
  readsBody,
  receiveBody,
  receiveForm,
  requireSignature,
  Input,
  type ReceivedBody,
  type Checked,
} from './receive.ts'
import { sessionSecretOf } from './session-cookie.ts'
import { compressed, validated } from './web.ts'
import { idempotencyKeyOf, readQuery, requireUtf8, validate, type ParsedParts } from './validate.ts'

export interface EndpointParts {
  context: CloudContext
  readBody: ReadBody
  resolveCredential: ResolveCredential
  /** The hub with its owner. */
  readHub: (id: number) => Promise<OwnedHub | undefined>
  limiter: RateLimiter
  rates: RateClasses
  media: Media
  /** Processor time of callers' pictures and videos. */
  mediaTime: SpentTime
  budgets: Budgets
  /** Bytes stored for idempotency keys. */
  storedAnswers: StoredAnswers
  /** Refuses answers that violate the contract; for tests. */
  checkResponses: boolean
}

/** A handler of any route. The table of handlers has already checked its type. */
export type AnyHandler = (input: HandlerInput<Route>) => Promise<unknown>

interface Endpoint extends EndpointParts {
  id: RouteId
  route: Route
  handler: AnyHandler
  /** The allowances that a call takes from. Its answer reports the first. */
  limits: readonly Rate[]
  /** Whether a request needs a lookup of a hub or a user. */
  looksUp: boolean
}

const limitsOf = (route: Route, rates: RateClasses): Endpoint['limits'] =>
  ratesOf(route)
    .map((rate) => rates[rate])
    .filter(({ requests }) => requests !== Infinity)

/** Headers of every answer of a route, whatever the result. */
export const headersOfRoute = (route: Route): Headers => ({
  ...(!isShared(route) && { 'Cache-Control': 'no-store' }),
  ...deprecationOf(route),
})

/** The limit that answers of a route report. */
export const limitOfRoute = (route: Route, rates: RateClasses): number | undefined =>
  limitsOf(route, rates)[0]?.requests

/** Serves one route. */
export function endpoint(id: RouteId, route: Route, handler: AnyHandler, parts: EndpointParts) {
  const looksUp = route.hub !== undefined || route.auth.kind === 'user'
  const self: Endpoint = { id, route, handler, limits: limitsOf(route, parts.rates), looksUp, ...parts }
  return (call: Call): Promise<Response> => serve(self, call)
}

/**
 * The steps of a request, in the order of the contract (§3): credential → scope → rate limit → validation → hub access
 * → existence. The handler does the last one.
 */
async function serve(self: Endpoint, call: Call): Promise<Response> {
  const { route } = self
  // Avoids `await` for values that are already there: each one takes longer than most of these steps.
  const resolved = self.resolveCredential(route.auth, new Credentials(call, self.context))
  const authenticated = resolved instanceof Promise ? await resolved : resolved
  requireScope(self, call, authenticated)
  takeAllowance(self, call, authenticated)
  requireSignature(self, call)
  const body = readsBody(route, call) ? await receiveBody(self, call, authenticated) : NO_BODY
  const parsed = parse(route, call, body)
  if (parsed instanceof Reply) return send(call, answerOf(route, parsed, self.checkResponses))
  if (route.openEnded) requirePlainPath(route, call)
  const key = route.idempotent ? idempotencyKeyOf(call.header('Idempotency-Key')) : undefined
  const { credential } = authenticated
  const caller = self.looksUp ? await authorize(self, credential, parsed) : (credential as Credential)
  const form = route.form && (await receiveForm(self, route.form, call, caller))
  try {
    const keyed = key === undefined ? undefined : keyedRequest(route, call, { body, key, caller, form })
    const input = new Input(route, call, { body, parsed, keyed, caller, form })
    const holder = holderOf(input.network, caller)
    const made =
      keyed === undefined ? await runHeld(self, input, holder) : await runOnce(self, input, keyed, holder)
    const answer = watched(self, call, { parsed, caller }, made)
    const shown = compressed(call, validated(route, answer, call))
    return send(call, shown instanceof Promise ? await shown : shown)
  } finally {
    // Removes the files that the handler's transaction did not keep.
    if (form) await self.media.release(form.files.map((file) => file.key))
  }
}

/** A file has one address. Other spellings (`/./`, `%2F`, `//`) are refused, because a signature covers one address. */
function requirePlainPath({ errors }: Route, { c }: Call): void {
  const isSigned = errors?.includes('forbidden') === true
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  const { pathname } = new URL(c.req.url)
  const sent = incoming?.url?.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] ?? pathname
  if (sent !== pathname || /%|\/\/|\/$/.test(pathname))
    throw new ApiError(isSigned ? 'forbidden' : 'not_found')
}

/** Whether all callers get the same answer. No cache stores any other answer (RFC 9111 §3). */
const isShared = ({ auth, rate }: Route): boolean =>
  (auth.kind === 'none' || auth.kind === 'optional-identity') && rate !== 'lookup'

/** Reads only the headers that the route's kind of credential needs. */
class Credentials implements Presented {
  readonly #call: Call
  readonly #context: CloudContext

  constructor(call: Call, context: CloudContext) {
    this.#call = call
    this.#context = context
  }

  get apiKey(): string | undefined {
    return this.#call.header('X-API-Key')
  }

  get authorization(): string | undefined {
    return this.#call.header('Authorization')
  }

  get session(): string | undefined {
    return sessionSecretOf(this.#call, this.#context)
  }

  get address(): string {
    return this.#call.address
  }

  misplacedKey(): string | undefined {
    const { req } = this.#call.c
    const [header] = Object.entries(req.header()).find(([, value]) => keyIn(value)) ?? []
    if (header !== undefined) return `header ${header}`
    const [query] = Object.entries(req.query()).find(([, value]) => keyIn(value)) ?? []
    return query === undefined ? undefined : 'address, which logs keep'
  }
}

function requireScope(self: Endpoint, call: Call, authenticated: Authenticated): void {
  const { missing } = authenticated
  if (missing === null) return
  const [limit] = self.limits
  if (limit) {
    const used = self.limiter.used(spenderOf(limit, call, authenticated), limit.shared ?? self.id)
    call.allowance = allowanceNow(self.context.runtime.clock, limit.requests, used)
  }
  throw new ApiError('scope_missing', missing.message, { required_scope: missing.scope })
}

function takeAllowance(self: Endpoint, call: Call, authenticated: Authenticated): void {
  const { credential } = authenticated
  const isGuest = self.route.makesGuests && credential.kind === 'identity' && credential.claims.anonymous
  for (const limit of isGuest ? [...self.limits, self.rates.guest] : self.limits) {
    const { requests, shared = self.id } = limit
    const used = self.limiter.take(spenderOf(limit, call, authenticated), shared, requests)
    if (limit === self.limits[0] || used === null)
      call.allowance = allowanceNow(self.context.runtime.clock, requests, used)
    if (used === null) throw new ApiError('rate_limit_exceeded')
  }
}

/** The owner of the allowance that a request takes from. */
const spenderOf = ({ by }: Rate, { address }: Call, { credential }: Authenticated): string =>
  by === 'address' || credential.kind === 'none' ? actorAt(networkOf(address)) : credential.actor

const NO_QUERY = new URLSearchParams()
/** The `search` of a full address, without parsing all of it. */
function queryOf(url: string): string {
  const hash = url.indexOf('#')
  const end = hash < 0 ? url.length : hash
  const begin = url.indexOf('?')
  return begin < 0 || begin > end ? '' : url.slice(begin, end)
}

/**
 * Parses path, query and body with the route's schemas. Some routes answer 200 with the problems; then returns that
 * answer.
 */
function parse(route: Route, { c }: Call, { json: body }: ReceivedBody): ParsedParts | Reply<unknown> {
  const text = queryOf(c.req.url)
  const query = text === '' ? NO_QUERY : readQuery(text)
  try {
    requireUtf8(text)
    return validate(route, { params: route.params ? c.req.param() : {}, query, body })
  } catch (error) {
    if (!route.invalidBody || !(error instanceof ApiError)) throw error
    const { message, items = [] } = error
    const problems = items.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`)
    return new Reply(route.invalidBody(Object.fromEntries(query), problems.join('; ') || message), {})
  }
}

const userBehind = statement((q, { identity }: { identity: string }) =>
  q.selectFrom('users').select('id').where('identity', '=', identity),
)

/** Checks access to the hub of the request, and finds the user of an identity. */
async function authorize(
  { route, context, readHub }: Endpoint,
  credential: Authenticated['credential'],
  { params, query }: ParsedParts,
): Promise<Credential> {
  const hub = route.hub === undefined ? undefined : (query?.[route.hub] ?? params?.[route.hub])
  if (credential.kind === 'api' && hub !== undefined) {
    if (route.formerOwners) await requireBooks(context.db.kysely, readHub, credential, hub as number)
    else await requireReach(context.db.kysely, readHub, credential, hub as number)
    if (route.method !== 'GET') await requireInService(context.db.kysely, hub as number)
  }
  if (route.auth.kind !== 'user') return credential
  const identity = credential as IdentityCredential
  const [user] = await userBehind(context.db.kysely, { identity: identity.identity })
  if (params?.['user_id'] !== undefined && params['user_id'] !== user?.id) throw new ApiError('forbidden')
  if (!user)
    throw new ApiError(
      'user_not_found',
      'The identity has no user yet: call POST /users/user/bootstrap first.',
    )
  return { ...identity, kind: 'user', userId: user.id }
}

/** A live stream ends when its reader's credential, rights or user end. */
function watched(
  self: Endpoint,
  call: Call,
  { parsed, caller }: Pick<Checked, 'parsed' | 'caller'>,
  answer: Answer,
): Answer {
  const { route, context } = self
  if (route.produces !== 'text/event-stream' || !(answer.body instanceof ReadableStream)) return answer
  const opened = JSON.stringify(caller)
  const isAllowed = async (): Promise<boolean> => {
    try {
      const { credential, missing } = await self.resolveCredential(
        route.auth,
        new Credentials(call, self.context),
      )
      if (missing !== null) return false
      const now = self.looksUp ? await authorize(self, credential, parsed) : credential
      // For a different set of hubs the reader opens another stream.
      return JSON.stringify(now) === opened
    } catch (error) {
      // While the database or the issuer is unavailable the stream continues.
      return !(error instanceof ApiError) || error.status >= 500
    }
  }
  const { clock } = context.runtime
  const everyMs = context.settings.streamCheckMs
  return { ...answer, body: watchedStream(answer.body, { clock, everyMs, isAllowed }) }
}

async function run(self: Endpoint, input: HandlerInput<Route>): Promise<Answer> {
  return answerTo(self, await self.handler(input))
}

const answerTo = ({ route, checkResponses }: Endpoint, output: unknown): Answer =>
  answerOf(route, output instanceof Reply ? output : new Reply(output, {}), checkResponses)

/** Runs a request. An event stream holds a part of the budget of streams while it is open. */
async function runHeld(self: Endpoint, input: HandlerInput<Route>, holder: Holder): Promise<Answer> {
  if (self.route.produces !== 'text/event-stream') return run(self, input)
  const { opened, body } = await heldStream(
    self.budgets.streams,
    holder,
    () => run(self, input),
    (answer) => (answer.body instanceof ReadableStream ? answer.body : undefined),
  )
  return body === undefined ? opened : { ...opened, body }
}

function keyedRequest(
  route: Route,
  { c }: Call,
  { body, key, caller, form }: Pick<Checked, 'body' | 'caller' | 'form'> & { key: string },
): KeyedRequest {
  const { pathname, search } = new URL(c.req.url)
  return {
    caller: caller.actor,
    key,
    fingerprint: fingerprintOf(
      route.method,
      pathname.replace(/\/$/, '') + search,
      form?.fingerprint ?? body.text,
    ),
  }
}

/** Runs a request with an idempotency key, or repeats the answer of an earlier request with this key. */
function runOnce(self: Endpoint, input: Input, keyed: KeyedRequest, holder: Holder): Promise<Answer> {
  const make = async (memento?: Memento): Promise<Made> => {
    try {
      input.memento = memento
      const reply = await self.handler(input)
      const answer = answerTo(self, reply)
      if (typeof answer.body !== 'string') throw new Error('a stream cannot be kept')
      return {
        answer: { ...answer, body: answer.body },
        memento: reply instanceof Reply ? reply.memento : undefined,
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { answer: errorAnswer(error, input.requestId) }
    }
  }
  const { storedAnswers } = self
  return idempotently(self.context, keyed, {
    run: make,
    replay: async (memento) => (await make(memento)).answer,
    room: {
      begin: () => storedAnswers.begin(holder),
      stored: (bytes) => storedAnswers.stored(holder, bytes),
    },
  })
}
