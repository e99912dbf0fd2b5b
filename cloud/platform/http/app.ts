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
import { outageInWords } from '../store/outage.ts'
import { errorAnswer, send, type RequestContext, type RequestState } from './answer.ts'
import { readOwner } from '../credentials/hub-access.ts'
import { keptGrants } from '../credentials/kept-grants.ts'
import { endpoint, type AnyHandler, type EndpointParts } from './endpoint.ts'
import type { Handlers } from './handler.ts'
import { healthz, readyz, type Health } from './health.ts'
import { pathExplainer } from './explain-path.ts'
import { rateHeaders } from './rate-limit.ts'
import { bodyReader } from './read-body.ts'
import { crossOrigin, securityHeaders } from './web.ts'

/** A request that was answered. */
export interface Served {
  method: string
  /** As documented (`/api/v1/owners/hubs`), never the path that was called; `none` where no route serves it. */
  route: string
  status: number
  seconds: number
}

export interface AppOptions extends Omit<EndpointParts, 'readBody' | 'readHub'> {
  /** Told of credentials that are refused; its own where absent. */
  refusals?: CloudRefusals
  /** The demo's routes are served if they have handlers. */
  handlers: Handlers<ServiceRouteId> & Partial<Handlers<DemoRouteId>>
  /** Where a request comes from: the address of the socket, or what a trusted proxy says. */
  addressOf(c: Context): string
  /** Callers reach it by https alone: their browsers are told to try nothing else. */
  isSecure: boolean
  /** Asked by load balancers. */
  health: Health
  onServed?(served: Served): void
  /** Origins whose pages may call; `*` is any. */
  corsOrigins: readonly string[]
}

const HSTS_SECONDS = 365 * 86_400

export type App = Hono<RequestState>

/** The whole HTTP interface, from the table of routes. Tests call `request` on it; `main.ts` listens with it. */
export function createApp(options: AppOptions): App {
  const { runtime, log, settings } = options.context
  const app: App = new Hono<RequestState>({ strict: false })
  const refusals = options.refusals ?? cloudRefusals(options.context)
  const parts = {
    ...options,
    readBody: bodyReader(runtime.clock, options.context.settings),
    readHub: keptGrants(options.context, (id: number) => readOwner(options.context.db.kysely, id)),
  }

  app.use(async (c, next) => {
    const requestId = `req_${randomHex(runtime.random, 12)}`
    c.set('requestId', requestId)
    c.set('address', options.addressOf(c))
    c.set('headers', {
      'X-Request-Id': requestId,
      ...securityHeaders,
      ...(options.isSecure && { 'Strict-Transport-Security': `max-age=${HSTS_SECONDS}` }),
    })
    const startedAt = runtime.clock.monotonic()
    await next()
    const { method, path } = c.req
    const ms = runtime.clock.monotonic() - startedAt
    const { status } = c.res
    const route = c.get('route') ?? 'none'
    options.onServed?.({ method, route, status, seconds: ms / 1000 })
    // Without the query: signed addresses and what people search for are nobody's who reads the log.
    const line = { requestId, method, path, route, status, ms: Math.round(ms), address: c.get('address') }
    if (settings.accessLog) log.info(line, 'request')
    else log.debug(line, 'request')
  })
  app.get('/healthz', (c) => {
    c.set('route', '/healthz')
    return healthz(c.get('headers'))
  })
  app.get('/readyz', (c) => {
    c.set('route', '/readyz')
    return readyz(options.health, c.get('headers'))
  })

  if (options.corsOrigins.length > 0) app.use(crossOrigin(options.corsOrigins))
  for (const [path, served] of pathsOf(options.handlers)) {
    for (const { id, route, handler } of served) {
      const serve = endpoint(id, route, handler, parts)
      const [pattern] = mountsOf(route)
      app.on(route.method, path, (c) => {
        c.set('route', pattern)
        return serve(c)
      })
    }
    const allowed = served.map(({ route }) => route.method).join(', ')
    app.all(path, (c) => {
      c.get('headers')['Allow'] = allowed
      return refuseUnserved(c, new ApiError('method_not_allowed', `This endpoint has ${allowed} alone.`))
    })
  }
  const explain = pathExplainer(servedBy(options.handlers).map(({ route }) => route))
  app.notFound((c) => {
    const meant = explain(c.req.path)
    const message = meant && `No such endpoint. Did you mean ${meant}?`
    return refuseUnserved(c, new ApiError('route_not_found', message))
  })
  app.onError((error, c) => refuse(c, error))
  return app

  /** No route serves the request, so that it has no limit of its own: shows that of open pages, and takes nothing from it. */
  function refuseUnserved(c: RequestContext, error: ApiError): Promise<Response> {
    Object.assign(c.get('headers'), rateHeaders(runtime.clock, rateClasses.open.requests, 0))
    return refuse(c, error)
  }

  function refuse(c: RequestContext, error: unknown): Promise<Response> {
    const requestId = c.get('requestId')
    const answer = errorAnswer(error, requestId)
    if (error instanceof ApiError) noteRefusal(c, error)
    else logFailure(requestId, c.req.path, error)
    return send(c, answer)
  }

  function logFailure(requestId: string, path: string, error: unknown): void {
    const outage = outageInWords(error)
    if (outage) log.error({ requestId, path, reason: outage.reason }, outage.sentence)
    else log.error({ requestId, path, err: error }, 'request failed')
  }

  function noteRefusal(c: RequestContext, { status, code }: ApiError): void {
    // To come without any credential is no attempt.
    if ((status !== 401 && status !== 403) || code === 'authentication_required') return
    const kind = status === 401 ? 'http_credential' : 'http_right'
    const key = prefixOf(c.req.header('X-API-Key') ?? '')
    refusals.note(kind, c.get('address'), { code, path: c.req.path, ...(key && { key }) })
  }
}

interface ServedRoute {
  id: RouteId
  route: Route
  handler: AnyHandler
}

/** The routes that have handlers. */
function servedBy(handlers: Partial<Handlers<RouteId>>): ServedRoute[] {
  return (Object.entries(routes) as [RouteId, Route][]).flatMap(([id, route]) => {
    const handler = handlers[id] as AnyHandler | undefined
    return handler ? [{ id, route, handler }] : []
  })
}

/**
 * Them by the paths at which they are served. A word comes before a parameter that would take it:
 * what stands at `/deals/apply-reward` is never asked for as `/deals/{deal_id}`.
 */
function pathsOf(handlers: Partial<Handlers<RouteId>>): [path: string, served: ServedRoute[]][] {
  const found = new Map<string, ServedRoute[]>()
  for (const served of servedBy(handlers))
    for (const mount of mountsOf(served.route)) {
      const plain = mount.replaceAll(/\{(\w+)\}/g, ':$1').replace(/(.)\/$/, '$1')
      const path = served.route.openEnded ? `${plain}{.+}` : plain
      found.set(path, [...(found.get(path) ?? []), served])
    }
  const parametersLast = (path: string): string =>
    path.replaceAll(/[^/]+/g, (part) => (part[0] === ':' ? '1' : '0'))
  return [...found].sort(([a], [b]) =>
    parametersLast(a) < parametersLast(b) ? -1 : parametersLast(a) > parametersLast(b) ? 1 : 0,
  )
}
