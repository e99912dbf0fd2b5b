import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Log } from '../../protocol/model/log.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { FleetError } from '../fleet.ts'
import { AnswerError } from '../interface/client.ts'
import { Refusal } from '../interface/refusal.ts'
import { StepError } from '../scenarios/bench.ts'
import { DeskError } from '../scenarios/desk.ts'
import { scenarioRoutes, type ScenarioRoutesOptions } from '../scenarios/routes.ts'
import { ScenarioError } from '../scenarios/text.ts'
import { fleetRoutes, type FleetRoutesOptions } from './fleet-routes.ts'
import { hubRoutes } from './hub-routes.ts'
import { liveRoutes, type LiveOptions } from './live.ts'
import { wireRoutes } from './wire-routes.ts'

const MAX_BODY_BYTES = 16 * 1024
/** Of a scenario's text, and of a run of it. */
const MAX_TEXT_BYTES = 256 * 1024
const holdsText = /^\/api\/(scenarios|runs)(\/|$)/

export interface ConsoleOptions
  extends FleetRoutesOptions, Omit<LiveOptions, 'stations'>, Omit<ScenarioRoutesOptions, 'isHub'> {
  page: PageAssets
  /** By which `Host` it may be called (`hostCheck`). */
  isAllowedHost: (header: string | undefined) => boolean
  log: Log
}

/** The simulator's HTTP interface and the technician's page at `/`. */
export function createConsole(options: ConsoleOptions): Hono {
  const { fleet, page, desk, scenarios, isAllowedHost, log, clock, liveMs, loginOf } = options
  const { stations } = fleet
  const app = new Hono({ strict: false })

  app.onError((error, c) => answer(c, error, log))
  app.notFound((c) =>
    c.json({ error: { code: 'not_found', message: `there is no ${c.req.method} ${c.req.path}` } }, 404),
  )
  // Another site's page must not switch the power off by way of a technician's browser.
  app.use(async (c, next) => {
    const origin = c.req.header('origin')
    if (origin !== undefined && hostOf(origin) !== c.req.header('host'))
      throw new Refusal(403, 'forbidden', 'requests from other sites are refused')
    if (!isAllowedHost(c.req.header('host')))
      throw new Refusal(403, 'forbidden', 'SIMULATOR_ALLOWED_HOSTS does not name this host')
    await next()
    if (!c.res.headers.has('Cache-Control')) c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
  })
  const limited = (maxSize: number) =>
    bodyLimit({
      maxSize,
      onError: () => {
        throw new Refusal(413, 'payload_too_large', `a body has at most ${maxSize} bytes`)
      },
    })
  const [small, large] = [limited(MAX_BODY_BYTES), limited(MAX_TEXT_BYTES)]
  app.use((c, next) => (holdsText.test(c.req.path) ? large : small)(c, next))

  app.get('/', (c) => {
    const { status, headers, body } = page.page(c.req.header('accept-encoding'))
    return c.body(body, status, headers)
  })
  app.get('/:file{[A-Za-z0-9_-]+\\.(?:js|css|svg)}', (c) => {
    const { status, headers, body } = page.file(c.req.param('file'), c.req.header('accept-encoding'))
    return c.body(body, status, headers)
  })
  liveRoutes(app, { stations, desk, clock, liveMs })
  scenarioRoutes(app, { desk, scenarios, isHub: (hubId) => stations.has(hubId) })
  fleetRoutes(app, { fleet, loginOf })
  wireRoutes(app, { stations, desk })
  hubRoutes(app, { stations, desk })
  return app
}

const notPossible = [FleetError, DeskError, StepError, AnswerError]

/** What went wrong, to who asked; what should not go wrong, to the log besides. */
function answer(c: Context, error: Error, log: Log): Response {
  if (error instanceof Refusal)
    return c.json({ error: { code: error.code, message: error.message } }, error.status)
  if (error instanceof ScenarioError)
    return c.json({ error: { code: 'invalid_scenario', message: error.message } }, 422)
  if (notPossible.some((kind) => error instanceof kind))
    return c.json({ error: { code: 'not_possible', message: error.message } }, 409)
  log.error({ error: error.message, stack: error.stack }, 'request failed')
  return c.json({ error: { code: 'internal_error', message: 'the simulator failed; its log says why' } }, 500)
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}
