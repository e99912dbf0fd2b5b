import { Hono, type Context } from 'hono'
import { mountsOf, rateClasses, type RateClasses, type Route } from '../../../protocol/contract/route.ts'
import {
  routes,
  type DemoRouteId,
  type RouteId,
  type ServiceRouteId,
} from '../../../protocol/contract/routes.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { prefixOf } from '../credentials/api-keys.ts'
import { actorAt, cachedGrants } from '../credentials/resolve.ts'
import { networkOf, openBudgets, type Budgets } from '../limits/budgets.ts'
import { SpentTime } from '../limits/spent-time.ts'
import { StoredAnswers } from '../limits/stored-answers.ts'
import type { CloudSettings } from '../settings/limits.ts'
import { cloudRefusals, type CloudRefusals } from '../refusals.ts'
import { outageText } from '../store/outage.ts'
import { Call, errorAnswer, send, type Headers, type Place } from './answer.ts'
import { readOwner } from '../credentials/hub-access.ts'
import { endpoint, headersOfRoute, limitOfRoute, type AnyHandler, type EndpointParts } from './endpoint.ts'
import type { Handlers } from './handler.ts'
import { healthz, readyz, type Health } from './health.ts'
import { PathRouter } from './path-router.ts'
import { addRateHeaders, allowanceNow, type RateLimiter } from './rate-limit.ts'
import { bodyOf, bodyReader, type ReadBody } from './read-body.ts'
import type { SiteRoute } from './site-route.ts'
import { crossOrigin, ownPageCheck, securityHeaders } from './web.ts'
import { isNear } from '../nearest.ts'

/** An answered request. */
export interface Served {
  method: string
  /** As documented (`/api/v1/owners/hubs`), never the actual path; `none` if no route matches. */
  route: string
  status: number
  seconds: number
}

export interface AppOptions extends Omit<
  EndpointParts,
  'readBody' | 'readHub' | 'rates' | 'budgets' | 'storedAnswers' | 'mediaTime'
> {
  /** The budgets of the process. Absent: new ones. */
  budgets?: Budgets
  /** Names in `Host` that may call routes which trust their caller, in addition to addresses and localhost. */
  allowedHosts?: readonly string[]
  /** Requests a minute. Absent: those of the contract. */
  rates?: RateClasses | undefined
  /** Receives refused credentials. Absent: a new counter. */
  refusals?: CloudRefusals
  /** The demo's routes are served if they have handlers. */
  handlers: Handlers<ServiceRouteId> & Partial<Handlers<DemoRouteId>>
  /** Further routes, for the service's own pages. */
  site?: readonly SiteRoute[]
  /** The client's address: the socket's, or the one from a trusted proxy. */
  addressOf(c: Context): string
  /** Callers use only https. The answers instruct browsers to use nothing else. */
  isSecure: boolean
  /** Whether this includes the host's subdomains. */
  hstsSubdomains?: boolean
  /** For load balancers. */
  health: Health
  onServed?(served: Served): void
  /** Origins with pages that may call; `*` is any. */
  corsOrigins: readonly string[]
}

const HSTS_SECONDS = 365 * 86_400

export type App = Hono

/** Answers a call. An error that it throws becomes an error answer. */
type Serve = (call: Call) => Response | Promise<Response>

/** The whole HTTP interface, built from the table of routes. Tests call `request` on it; `main.ts` listens with it. */
export function createApp(options: AppOptions): App {
  const { runtime, settings } = options.context
  const { budgets = openBudgets(settings) } = options
  const app: App = new Hono({ strict: false, router: new PathRouter() })
  const frame = new Frame(options)
  const { rates = ratesBy(settings) } = options
  const parts = {
    ...options,
    rates,
    budgets,
    storedAnswers: new StoredAnswers(runtime.clock, budgets.storedAnswers),
    mediaTime: new SpentTime(budgets.mediaTime, runtime.clock),
    readBody: bodyReader(runtime.clock, settings, budgets.heldBodies),
    readHub: cachedGrants(options.context, (id: number) => readOwner(options.context.db.kysely, id)),
  }
  const lookedAt = (path: string, serve: Serve): void => {
    app.get(path, frame.around({ route: path, headers: {}, limit: undefined }, serve))
  }
  lookedAt('/healthz', (call) => healthz(call.headersWith({})))
  lookedAt('/readyz', (call) => readyz(options.health, call.headersWith({})))

  const refuseOthers = (path: string, methods: readonly string[]): void => {
    const allowed = methods.join(', ')
    app.all(
      path,
      frame.around(unserved(rates, { Allow: allowed }), () => {
        throw new ApiError('method_not_allowed', `This endpoint has ${allowed} alone.`)
      }),
    )
  }
  for (const [path, served] of pathsOf(options.handlers)) {
    for (const { id, route, handler } of served) {
      const [pattern] = mountsOf(route)
      const place = { route: pattern!, headers: headersOfRoute(route), limit: limitOfRoute(route, rates) }
      const serve = endpoint(id, route, handler, parts)
      app.on(
        route.method,
        path,
        frame.around(place, route.trustsCaller ? fromOwnPage(options, serve) : serve),
      )
    }
    refuseOthers(
      path,
      served.map(({ route }) => route.method),
    )
  }
  const siteRoutes = options.site ?? []
  for (const route of siteRoutes) {
    const place = {
      route: route.path,
      headers: { 'Cache-Control': 'no-store' },
      limit: route.rate?.requests,
      failed: route.failed,
    }
    const serve = site(route, options.limiter, runtime.clock, parts.readBody)
    app.on(
      route.method,
      route.path,
      frame.around(place, route.trustsCaller ? fromOwnPage(options, serve) : serve),
    )
    const same = siteRoutes.filter(({ path }) => path === route.path)
    refuseOthers(
      route.path,
      same.map(({ method }) => method),
    )
  }
  const explain = pathExplainer(servedBy(options.handlers).map(({ route }) => route))
  app.notFound(
    frame.around(unserved(rates, {}), ({ c }) => {
      const meant = explain(c.req.path)
      throw new ApiError('route_not_found', meant && `No such endpoint. Did you mean ${meant}?`)
    }),
  )
  return app
}

/** Serves only calls of the service's own pages and of programs. */
function fromOwnPage({ allowedHosts = [], corsOrigins }: AppOptions, serve: Serve): Serve {
  const isOwnPage = ownPageCheck(allowedHosts, corsOrigins)
  return (call) => {
    if (isOwnPage(call)) return serve(call)
    throw new ApiError(
      'forbidden',
      'ALLOWED_HOSTS or CORS_ORIGINS must name the host and the origin of this call.',
    )
  }
}

/** Serves a route of the service's own pages. */
function site(
  { path, rate, serve }: SiteRoute,
  limiter: RateLimiter,
  clock: Clock,
  readBody: ReadBody,
): Serve {
  return async (call) => {
    if (rate) {
      const { requests, shared = path } = rate
      const used = limiter.take(actorAt(networkOf(call.address)), shared, requests)
      call.allowance = allowanceNow(clock, requests, used)
      if (used === null) throw new ApiError('rate_limit_exceeded')
    }
    const body = (): Promise<string> =>
      readBody(bodyOf(call.c), { isOwner: false, holder: { network: networkOf(call.address) } })
    return send(call, await serve(call, body))
  }
}

/** The rates of the contract, overridden by the operator's settings. */
const ratesBy = ({ guestsPerMinute: requests }: CloudSettings): RateClasses => ({
  ...rateClasses,
  guest: { ...rateClasses.guest, requests },
})

/** The common parts of a route's answers. */
interface Mounted {
  route: string
  headers: Headers
  /** The limit of the allowance that answers report. */
  limit: number | undefined
  failed?: Place['failed']
}

/**
 * For requests without a route: they have no limit. Their answers show the limit of open pages and take nothing from
 * it.
 */
const unserved = (rates: RateClasses, headers: Headers): Mounted => ({
  route: 'none',
  headers,
  limit: rates.open.requests,
})

/** Wraps every answer: its id, its headers, its log line and its error handling. */
class Frame {
  readonly #options: AppOptions
  readonly #refusals: CloudRefusals
  readonly #across: ReturnType<typeof crossOrigin> | undefined

  constructor(options: AppOptions) {
    this.#options = options
    this.#refusals = options.refusals ?? cloudRefusals(options.context)
    this.#across = options.corsOrigins.length > 0 ? crossOrigin(options.corsOrigins) : undefined
  }

  around({ route, headers, limit, failed }: Mounted, serve: Serve): (c: Context) => Promise<Response> {
    const { context, isSecure, hstsSubdomains = false } = this.#options
    const { clock, random } = context.runtime
    const untouched = () => (limit === undefined ? undefined : allowanceNow(clock, limit, 0))
    const named: Record<string, string> = {
      'X-Request-Id': '',
      ...securityHeaders,
      ...(isSecure && {
        'Strict-Transport-Security': `max-age=${HSTS_SECONDS}${hstsSubdomains ? '; includeSubDomains' : ''}`,
      }),
      ...headers,
    }
    const allowance = untouched()
    if (allowance) addRateHeaders(named, allowance)
    const place: Place = { route, headers: { ...named }, untouched, failed }
    return async (c) => {
      const address = this.#options.addressOf(c)
      const call = new Call(c, place, { requestId: `req_${randomHex(random, 12)}`, address })
      const startedAt = clock.monotonic()
      const answer = this.#across
        ? await this.#across(c, () => this.#answer(call, serve))
        : await this.#answer(call, serve)
      this.#note(call, answer.status, clock.monotonic() - startedAt)
      return answer
    }
  }

  async #answer(call: Call, serve: Serve): Promise<Response> {
    try {
      return await serve(call)
    } catch (error) {
      if (error instanceof ApiError) this.#noteRefusal(call, error)
      else this.#logFailure(call, error)
      const answer = errorAnswer(error, call.requestId)
      return send(call, call.place.failed?.(call, answer) ?? answer)
    }
  }

  #note({ c, place, requestId, address }: Call, status: number, ms: number): void {
    const { method, path } = c.req
    const { route } = place
    this.#options.onServed?.({ method, route, status, seconds: ms / 1000 })
    const { log, settings } = this.#options.context
    // The log omits the query, because signed addresses and search texts are confidential.
    const line = { requestId, method, path, route, status, ms: Math.round(ms), address }
    if (settings.accessLog) log.info(line, 'request')
    else log.debug(line, 'request')
  }

  #logFailure({ c, requestId }: Call, error: unknown): void {
    const { log } = this.#options.context
    const { path } = c.req
    const outage = outageText(error)
    if (outage) log.error({ requestId, path, reason: outage.reason }, outage.sentence)
    else log.error({ requestId, path, err: error }, 'request failed')
  }

  #noteRefusal(call: Call, { status, code, why }: ApiError): void {
    // A call without any credential is no attempt to break in.
    if ((status !== 401 && status !== 403) || code === 'authentication_required') return
    const kind = status === 401 ? 'http_credential' : 'http_right'
    const key = prefixOf(call.header('X-API-Key') ?? '')
    this.#refusals.note(kind, call.address, {
      code,
      ...why,
      path: call.c.req.path,
      ...(key && { key }),
    })
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

/** The same routes by their paths. */
function pathsOf(handlers: Partial<Handlers<RouteId>>): Map<string, ServedRoute[]> {
  const found = new Map<string, ServedRoute[]>()
  for (const served of servedBy(handlers))
    for (const mount of mountsOf(served.route)) {
      const plain = mount.replaceAll(/\{(\w+)\}/g, ':$1').replace(/(.)\/$/, '$1')
      const path = served.route.openEnded ? `${plain}{.+}` : plain
      found.set(path, [...(found.get(path) ?? []), served])
    }
  return found
}

/** A served path, as documented. */
interface Known {
  template: string
  /** Its steps after `/api/v1`. */
  core: readonly string[]
  methods: string[]
}

/** Longer paths are no typing errors. */
const MOST_STEPS = 12

/** Names the endpoint that an unknown path probably meant: `GET, POST /api/v1/owners/webhooks`. */
function pathExplainer(routes: Iterable<Route>): (path: string) => string | undefined {
  const known = new Map<string, Known>()
  for (const route of routes)
    for (const template of mountsOf(route)) {
      const methods = known.get(template)?.methods ?? []
      known.set(template, { template, core: coreOf(template), methods: [...methods, route.method] })
    }
  return (path) => {
    const steps = coreOf(path)
    if (steps.length === 0 || steps.length > MOST_STEPS) return undefined
    const found = nearest([...known.values()], steps) ?? byLastWord([...known.values()], steps)
    return found && `${found.methods.join(', ')} ${found.template}`
  }
}

/** The steps of a path without its prefix, or without a wrong prefix: `/v1/…`, `/api/…`. */
const coreOf = (path: string): string[] =>
  path
    .split('/')
    .filter((step) => step !== '')
    .filter((step, index) => index > 1 || !/^(api|v\d)$/i.test(step))

const isParameter = (step: string): boolean => step.startsWith('{')

/** The path with the fewest differing words; among equals, the one with the fewest parameters. */
function nearest(known: readonly Known[], steps: readonly string[]): Known | undefined {
  const near = known.flatMap((each) => {
    const { core } = each
    if (core.length !== steps.length) return []
    if (!core.every((step, index) => isParameter(step) || isNear(steps[index]!, step))) return []
    const same = core.filter((step, index) => step === steps[index]).length
    const parameters = core.filter(isParameter).length
    // A path that shares only its number of steps is not near.
    return same + parameters === 0 && core.length > 1
      ? []
      : [{ each, rank: (core.length - same - parameters) * MOST_STEPS + parameters }]
  })
  return near.filter(({ each }) => !each.core.every(isParameter)).toSorted((a, b) => a.rank - b.rank)[0]?.each
}

/** The only path that ends with the word. `/owners/hubs/open_bin` has the right word in the wrong place. */
function byLastWord(known: readonly Known[], steps: readonly string[]): Known | undefined {
  const word = steps.at(-1)!
  const ending = known.filter(({ core }) => core.at(-1) === word && core.length > 1)
  return new Set(ending.map(({ core }) => core.join('/'))).size === 1 ? ending[0] : undefined
}
