import { Hono, type Context } from 'hono'
import { mountsOf, rateClasses, type Route } from '../../../protocol/contract/route.ts'
import {
  routes,
  type DemoRouteId,
  type RouteId,
  type ServiceRouteId,
} from '../../../protocol/contract/routes.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import { ApiError } from '../api-error.ts'
import { prefixOf } from '../credentials/api-keys.ts'
import { cloudRefusals, type CloudRefusals } from '../refusals.ts'
import { errorAnswer, send, type RequestContext, type RequestState } from './answer.ts'
import { endpoint, type AnyHandler, type EndpointParts } from './endpoint.ts'
import type { Handlers } from './handler.ts'
import { rateHeaders } from './rate-limit.ts'
import { bodyReader } from './read-body.ts'

export interface AppOptions extends Omit<EndpointParts, 'readBody'> {
  /** Told of credentials that are refused; its own where absent. */
  refusals?: CloudRefusals
  /** The demo's routes are served if they have handlers. */
  handlers: Handlers<ServiceRouteId> & Partial<Handlers<DemoRouteId>>
  /** Where a request comes from: the address of the socket, or what a trusted proxy says. */
  addressOf(c: Context): string
  /** Callers reach it by https alone: their browsers are told to try nothing else. */
  isSecure: boolean
}

const HSTS_SECONDS = 365 * 86_400

export type App = Hono<RequestState>

/** The whole HTTP interface, from the table of routes. Tests call `request` on it; `main.ts` listens with it. */
export function createApp(options: AppOptions): App {
  const { runtime, log } = options.context
  const app: App = new Hono<RequestState>({ strict: false })
  const refusals = options.refusals ?? cloudRefusals(options.context)
  const parts = { ...options, readBody: bodyReader(runtime.clock, options.context.settings) }

  app.use(async (c, next) => {
    const requestId = `req_${randomHex(runtime.random, 12)}`
    c.set('requestId', requestId)
    c.set('address', options.addressOf(c))
    c.set('headers', {
      'X-Request-Id': requestId,
      // What a caller has stored is taken for the type that it is said to have, and for nothing else.
      'X-Content-Type-Options': 'nosniff',
      ...(options.isSecure && { 'Strict-Transport-Security': `max-age=${HSTS_SECONDS}` }),
    })
    const startedAt = runtime.clock.monotonic()
    await next()
    const { method, path } = c.req
    const ms = Math.round(runtime.clock.monotonic() - startedAt)
    log.debug({ requestId, method, path, status: c.res.status, ms }, 'request')
  })

  for (const [path, served] of pathsOf(options.handlers)) {
    for (const { id, route, handler } of served)
      app.on(route.method, path, endpoint(id, route, handler, parts))
    const allowed = served.map(({ route }) => route.method).join(', ')
    app.all(path, (c) => {
      c.get('headers')['Allow'] = allowed
      return refuseUnserved(c, 'method_not_allowed')
    })
  }
  app.notFound((c) => refuseUnserved(c, 'route_not_found'))
  app.onError((error, c) => refuse(c, error))
  return app

  /** No route serves the request, so that it has no limit of its own: shows that of open pages, and takes nothing from it. */
  function refuseUnserved(
    c: RequestContext,
    code: 'route_not_found' | 'method_not_allowed',
  ): Promise<Response> {
    Object.assign(c.get('headers'), rateHeaders(runtime.clock, rateClasses.open.requests, 0))
    return refuse(c, new ApiError(code))
  }

  function refuse(c: RequestContext, error: unknown): Promise<Response> {
    const requestId = c.get('requestId')
    const answer = errorAnswer(error, requestId)
    if (error instanceof ApiError) noteRefusal(c, error)
    else log.error({ requestId, path: c.req.path, err: error }, 'request failed')
    return send(c, answer)
  }

  function noteRefusal(c: RequestContext, { status, code }: ApiError): void {
    // To come without any credential is no attempt.
    if ((status !== 401 && status !== 403) || code === 'authentication_required') return
    const kind = status === 401 ? 'http_credential' : 'http_right'
    const key = prefixOf(c.req.header('X-API-Key') ?? '')
    refusals.note(kind, c.get('address'), { code, path: c.req.path, ...(key && { key }) })
  }
}

interface Served {
  id: RouteId
  route: Route
  handler: AnyHandler
}

/**
 * The routes that have handlers, by the paths at which they are served. A word comes before a parameter that would take it:
 * what stands at `/deals/apply-reward` is never asked for as `/deals/{deal_id}`.
 */
function pathsOf(handlers: Partial<Handlers<RouteId>>): [path: string, served: Served[]][] {
  const found = new Map<string, Served[]>()
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const handler = handlers[id] as AnyHandler | undefined
    if (!handler) continue
    for (const mount of mountsOf(route)) {
      const plain = mount.replaceAll(/\{(\w+)\}/g, ':$1').replace(/(.)\/$/, '$1')
      const path = route.openEnded ? `${plain}{.+}` : plain
      found.set(path, [...(found.get(path) ?? []), { id, route, handler }])
    }
  }
  const parametersLast = (path: string): string =>
    path.replaceAll(/[^/]+/g, (part) => (part[0] === ':' ? '1' : '0'))
  return [...found].sort(([a], [b]) =>
    parametersLast(a) < parametersLast(b) ? -1 : parametersLast(a) > parametersLast(b) ? 1 : 0,
  )
}
