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
}

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
    c.set('headers', { 'X-Request-Id': requestId })
    const startedAt = runtime.clock.monotonic()
    await next()
    const { method, path } = c.req
    const ms = Math.round(runtime.clock.monotonic() - startedAt)
    log.debug({ requestId, method, path, status: c.res.status, ms }, 'request')
  })

  const methods = new Map<string, string[]>()
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const handler = options.handlers[id]
    if (!handler) continue
    for (const mount of mountsOf(route)) {
      const plain = mount.replaceAll(/\{(\w+)\}/g, ':$1').replace(/(.)\/$/, '$1')
      const path = route.openEnded ? `${plain}{.+}` : plain
      app.on(route.method, path, endpoint(id, route, handler as AnyHandler, parts))
      methods.set(path, [...(methods.get(path) ?? []), route.method])
    }
  }
  for (const [path, allowed] of methods)
    app.all(path, (c) => {
      c.get('headers')['Allow'] = allowed.join(', ')
      return refuseUnserved(c, 'method_not_allowed')
    })
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
