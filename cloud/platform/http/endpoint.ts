import type { Context } from 'hono'
import { rateClasses, type Route } from '../../../protocol/contract/route.ts'
import type { RouteId } from '../../../protocol/contract/routes.ts'
import { requireReach } from '../credentials/hub-access.ts'
import type { Credential, IdentityCredential } from '../credentials/credential.ts'
import type { Authenticated, ResolveCredential } from '../credentials/resolve.ts'
import type { CloudContext } from '../context.ts'
import type { Media } from '../media/media.ts'
import { ApiError } from '../api-error.ts'
import { JsonText, Reply, type HandlerInput } from './handler.ts'
import { fingerprintOf, idempotencyKeyOf, idempotently, type Answer } from './idempotency.ts'
import { rateHeaders, type RateLimiter } from './rate-limit.ts'
import { parseJson, readBody } from './read-body.ts'
import { formRequestOf } from './form-request.ts'
import { readForm } from './read-form.ts'
import { renderError } from './render-error.ts'
import { validate, validateForm, type ParsedParts, type RawParts } from './validate.ts'

/** What the app keeps with a request. */
export interface RequestState {
  Variables: {
    requestId: string
    address: string
    /** Headers of whatever is answered: an object, as building `Headers` one by one takes longer than most handlers. */
    headers: Record<string, string>
  }
}
type RequestContext = Context<RequestState>

export interface EndpointParts {
  context: Pick<CloudContext, 'db' | 'runtime' | 'log'>
  resolveCredential: ResolveCredential
  limiter: RateLimiter
  media: Media
  /** Refuses answers that are not as the contract says; for tests, which are there to find them. */
  checkResponses: boolean
}

/** A handler of any route: the table has checked already that each route has its own. */
export type AnyHandler = (input: HandlerInput<Route>) => Promise<unknown>

/**
 * One route in full, in the order of the contract (§3): credential → scope → rate limit → validation → hub access →
 * existence; the last is the handler's.
 */
export function endpoint(id: RouteId, route: Route, handler: AnyHandler, parts: EndpointParts) {
  const { context, resolveCredential, limiter, media, checkResponses } = parts
  const { clock } = context.runtime
  const q = context.db.kysely
  const limit = rateClasses[route.rate]

  return async (c: RequestContext): Promise<Response> => {
    const { credential, missingScope } = await authenticate(c)
    const spender = limit.by === 'address' ? `address:${c.get('address')}` : credential.actor
    if (missingScope !== null) {
      addHeaders(c, rateHeaders(clock, limit.requests, await limiter.used(spender, id)))
      throw new ApiError('scope_missing', undefined, { required_scope: missingScope })
    }
    await takeAllowance(c, spender)

    const rawBody = route.body || route.rawBody ? await readBody(c.req.raw) : ''
    const url = new URL(c.req.url)
    let parsed: ParsedParts
    try {
      parsed = validate(route, {
        params: c.req.param(),
        query: url.searchParams,
        body: route.body ? jsonBody(c, rawBody) : { present: false, value: undefined },
      })
    } catch (error) {
      if (!route.invalidBody || !(error instanceof ApiError)) throw error
      const given = Object.fromEntries(url.searchParams)
      return respond(c, sent(new Reply(route.invalidBody(given, wordsOf(error)), {})))
    }
    const key = route.idempotent && idempotencyKeyOf(c.req.header('Idempotency-Key'))
    const caller = await authorize(credential, parsed)

    const form = route.form && (await readForm(media, clock, formRequestOf(c, route.form)))
    try {
      const input: HandlerInput<Route> = {
        ...(parsed as { params: undefined; query: undefined; body: undefined }),
        form: (form && { ...form, fields: validateForm(route, route.form!, form) }) as undefined,
        credential: caller,
        requestId: c.get('requestId'),
        idempotencyKey: key || undefined,
        rawBody,
        url,
        header: (name) => c.req.header(name),
      }
      const path = url.pathname.replace(/\/$/, '') + url.search
      const content = form?.fingerprint ?? rawBody
      const answer = key
        ? await idempotently(
            context,
            { caller: caller.actor, key, fingerprint: fingerprintOf(route.method, path, content) },
            () => answerOrError(input),
          )
        : await run(input)
      return await respond(c, answer)
    } finally {
      // What the handler's transaction did not keep.
      if (form) await media.release(form.files.map(({ key }) => key))
    }
  }

  async function respond(c: RequestContext, { status, headers, body }: SentAnswer): Promise<Response> {
    const hasBody = status !== 204 && c.req.raw.method !== 'HEAD'
    if (!hasBody && body instanceof ReadableStream) await body.cancel()
    return new Response(hasBody ? body : null, { status, headers: { ...c.get('headers'), ...headers } })
  }

  async function authenticate(c: RequestContext): Promise<Authenticated> {
    try {
      return await resolveCredential(route.auth, {
        apiKey: c.req.header('X-API-Key'),
        authorization: c.req.header('Authorization'),
        address: c.get('address'),
      })
    } catch (error) {
      // Nobody in particular has called: nobody's allowance is taken from.
      addHeaders(c, rateHeaders(clock, limit.requests, 0))
      throw error
    }
  }

  async function takeAllowance(c: RequestContext, caller: string): Promise<void> {
    if (limit.requests === Infinity) return
    const used = await limiter.take(caller, id, limit.requests)
    addHeaders(c, rateHeaders(clock, limit.requests, used))
    if (used === null) throw new ApiError('rate_limit_exceeded')
  }

  function addHeaders(c: RequestContext, headers: Record<string, string>): void {
    Object.assign(c.get('headers'), headers)
  }

  function jsonBody(c: RequestContext, text: string): RawParts['body'] {
    const body = parseJson(text, c.req.header('Content-Type'), route.interface === 'owner')
    return body.present || !route.bodyOptional ? body : { present: true, value: {} }
  }

  /** Access to the hub that the request names, and the user behind an identity. */
  async function authorize(
    credential: Exclude<Credential, { kind: 'user' }>,
    { params, query }: ParsedParts,
  ): Promise<Credential> {
    if (credential.kind === 'api' && route.hub !== undefined)
      await requireReach(q, credential, (query?.[route.hub] ?? params?.[route.hub]) as number)
    if (route.auth.kind !== 'user') return credential
    const identity = credential as IdentityCredential
    const user = await q
      .selectFrom('users')
      .select('id')
      .where('identity', '=', identity.identity)
      .executeTakeFirst()
    if (params?.['user_id'] !== undefined && params['user_id'] !== user?.id) throw new ApiError('forbidden')
    if (!user) throw new ApiError('user_not_found', 'The identity has no user yet: bootstrap it first.')
    return { ...identity, kind: 'user', userId: user.id }
  }

  async function run(input: HandlerInput<Route>): Promise<SentAnswer> {
    const output = await handler(input)
    return sent(output instanceof Reply ? output : new Reply(output, {}))
  }

  function sent({ body, status, headers }: Reply<unknown>): SentAnswer {
    if (checkResponses) route.response.parse(body instanceof JsonText ? body.read() : body)
    return {
      status: status ?? route.status ?? 200,
      headers: {
        ...(route.status !== 204 && {
          'Content-Type': `${route.produces ?? 'application/json'}; charset=utf-8`,
        }),
        ...headers,
      },
      body: bodyOf(route, body),
    }
  }

  /** Of a request with an idempotency key, whose errors are answers to keep too. */
  async function answerOrError(input: HandlerInput<Route>): Promise<Answer> {
    try {
      const answer = await run(input)
      if (typeof answer.body !== 'string') throw new Error('what is streamed cannot be kept')
      return { ...answer, body: answer.body }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { status, body } = renderError(error, input.requestId)
      return {
        status,
        headers: { 'Content-Type': 'application/json; charset=utf-8' },
        body: JSON.stringify(body),
      }
    }
  }
}

/** What is wrong with a request, in a sentence. */
const wordsOf = ({ message, items = [] }: ApiError): string =>
  items.length === 0 ? message : items.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')

/** An answer as it is sent. */
type SentAnswer = Omit<Answer, 'body'> & { body: string | ReadableStream | null }

function bodyOf(route: Route, body: unknown): SentAnswer['body'] {
  if (route.status === 204) return ''
  if (body instanceof JsonText) return body.text
  if (body instanceof ReadableStream || body === null) return body
  return route.produces ? (body as string) : JSON.stringify(body)
}
