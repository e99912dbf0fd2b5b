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
import { endpoint, type AnyHandler, type EndpointParts, type RequestState } from './endpoint.ts'
import type { Handlers } from './handler.ts'
import { rateHeaders } from './rate-limit.ts'
import { renderError } from './render-error.ts'

export interface AppOptions extends EndpointParts {
  /** A demo's routes are served where they have handlers. */
  handlers: Handlers<ServiceRouteId> & Partial<Handlers<DemoRouteId>>
  /** Where a request comes from: the address of the socket, or what a trusted proxy says. */
  addressOf(c: Context): string
}

export type App = Hono<RequestState>

/** The whole HTTP interface, from the table of routes. Tests call `request` on it; `main.ts` listens with it. */
export function createApp(options: AppOptions): App {
  const { runtime, log } = options.context
  const app: App = new Hono<RequestState>({ strict: false })

  app.use(async (c, next) => {
    const requestId = `req_${randomHex(runtime.random, 12)}`
    c.set('requestId', requestId)
    c.set('address', options.addressOf(c))
    c.set('headers', { 'X-Request-Id': requestId })
    const startedAt = runtime.clock.monotonic()
    await next()
    log.debug(
      {
        requestId,
        method: c.req.method,
        path: c.req.path,
        status: c.res.status,
        ms: Math.round(runtime.clock.monotonic() - startedAt),
      },
      'request',
    )
  })

  const methods = new Map<string, string[]>()
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const handler = options.handlers[id]
    if (!handler) continue
    for (const mount of mountsOf(route)) {
      const plain = mount.replaceAll(/\{(\w+)\}/g, ':$1').replace(/(.)\/$/, '$1')
      const path = route.openEnded ? `${plain}{.+}` : plain
      app.on(route.method, path, endpoint(id, route, handler as AnyHandler, options))
      methods.set(path, [...(methods.get(path) ?? []), route.method])
    }
  }
  for (const [path, allowed] of methods)
    app.all(path, (c) => {
      c.get('headers')['Allow'] = allowed.join(', ')
      return unserved(c, 'method_not_allowed')
    })
  app.notFound((c) => unserved(c, 'route_not_found'))
  app.onError((error, c) => answer(c, error))
  return app

  /** No route and so no limit of its own: told is that of pages for everybody, of which this takes nothing. */
  function unserved(c: Context<RequestState>, code: 'route_not_found' | 'method_not_allowed'): Response {
    Object.assign(c.get('headers'), rateHeaders(runtime.clock, rateClasses.open.requests, 0))
    return answer(c, new ApiError(code))
  }

  function answer(c: Context<RequestState>, error: unknown): Response {
    const requestId = c.get('requestId')
    const { status, body } = renderError(error, requestId)
    if (status === 500) log.error({ requestId, path: c.req.path, err: error }, 'request failed')
    const headers = new Headers({ ...c.get('headers'), 'Content-Type': 'application/json' })
    if (status === 401)
      for (const scheme of ['Bearer realm="larder"', 'APIKey']) headers.append('WWW-Authenticate', scheme)
    if (status === 416) headers.set('Content-Range', `bytes */${String(body.error.details?.['size'])}`)
    return new Response(JSON.stringify(body), { status, headers })
  }
}
