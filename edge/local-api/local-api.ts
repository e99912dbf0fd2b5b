import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { pageCommands } from '../../protocol/model/hub-commands.ts'
import type { AssetAnswer, PageAssets } from '../../protocol/page-assets.ts'
import type { HubCore, HubAcceptance } from '../core/hub-core.ts'
import type { LinkSummary } from '../hardware/link-summary.ts'
import type { Recent } from '../recent.ts'
import type { SyncState } from '../sync/sync.ts'
import { actRoutes, type ActOptions, commandRoutes, type CommandOptions } from './act-routes.ts'
import { bodyOf, Nothing, done, parse } from './bodies.ts'
import { LocalError } from './local-error.ts'
import type { LocalState } from './local-state.ts'
import { loginRoutes, nameOf, type LocalApp, type LoginOptions } from './login-routes.ts'
import { streamSSE } from 'hono/streaming'
import { streamState } from '../../protocol/model/json-changes.ts'
import { z } from 'zod'

/** The part of the hub's core that the local API uses. */
export type LocalCore = ActOptions['core'] &
  CommandOptions['core'] &
  Pick<
    HubCore,
    | 'health'
    | 'readings'
    | 'foreignControllers'
    | 'unknownOperations'
    | 'deadLetters'
    | 'orders'
    | 'stock'
    | 'alarms'
    | 'held'
    | 'people'
    | 'acceptance'
    | 'noteRestart'
  >

export interface LocalApiOptions extends Omit<LoginOptions, 'people'>, ActOptions, CommandOptions {
  core: LocalCore
  sync: { state(): SyncState }
  links: () => LinkSummary[]
  recent: () => Recent
  hardware: HardwareDescription
  /** Name and version of the service. */
  software: string
  page: PageAssets
  /** Interval of updates to a live page, in milliseconds. */
  liveMs: number
  /** Whether another hub or stand-in answers now, so that live pages must reconnect. */
  isOver?: () => boolean
  /** Ends the service; its supervisor starts it again. */
  restart: () => void
  /** Why a retired hub cannot leave for another cell yet. */
  waitsToLeave?: () => string | undefined
  /** Checks the `Host` header (`hostCheck`). */
  isAllowedHost: (header: string | undefined) => boolean
}

/** Milliseconds since the Unix epoch: earlier lines are left out. */
const Since = z.coerce.number().default(0)

const MAX_BODY_BYTES = 16 * 1024

/**
 * The hub's own API, for people at the hub. It needs neither the cloud nor the internet. All of `/api`
 * requires a token; `front.ts` answers supervisors.
 */
export function createLocalApi(options: LocalApiOptions): LocalApp {
  const { log } = options
  const app: LocalApp = new Hono()

  app.onError((error, c) => {
    if (!(error instanceof LocalError))
      log.error({ path: c.req.path, error: String(error) }, 'local API failed')
    return answer(c, error instanceof LocalError ? error : new LocalError('internal_error'))
  })
  app.notFound((c) => answer(c, new LocalError('not_found')))
  app.use(async (c, next) => {
    if (!options.isAllowedHost(c.req.header('host'))) throw new LocalError('host_not_allowed')
    await next()
    if (!c.res.headers.has('Cache-Control')) c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
  })

  app.get('/', (c) => asset(c, options.page.page(c.req.header('accept-encoding'))))
  app.get('/:file{[A-Za-z0-9_-]+\\.(?:js|css|svg)}', (c) =>
    asset(c, options.page.file(c.req.param('file'), c.req.header('accept-encoding'))),
  )

  app.use(
    '/api/*',
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new LocalError('payload_too_large')
      },
    }),
  )

  loginRoutes(app, {
    ...options,
    people: () => options.core.people(),
    storage: () => options.core.health().storage,
  })
  app.get('/api/state', (c) => c.json(stateOf(options)))
  app.get('/api/hardware', (c) => {
    const { hardware, software, motionTimeoutMs } = options
    return c.json({ hardware, software, motion_timeout_ms: motionTimeoutMs })
  })
  app.get('/api/recent', (c) => {
    const since = parse(Since, c.req.query('since'), 'since')
    const { log, wire } = options.recent()
    const isNew = ({ at }: { at: number }): boolean => at >= since
    return c.json({ log: log.filter(isNew), wire: wire.filter(isNew) })
  })
  app.get('/api/live', (c) => {
    const { clock, liveMs, isOver = () => false } = options
    const isAllowed = c.get('isAllowed')
    return streamSSE(c, (stream) =>
      streamState(stream, {
        clock,
        liveMs,
        read() {
          if (!isAllowed() || isOver()) return undefined
          const { sync, ...state } = stateOf(options)
          // `receivedMsAgo` differs at every poll, so it is left out: a page needs only the phase and the reason.
          const { phase, reason } = sync
          return { ...state, sync: { phase, reason } }
        },
      }),
    )
  })
  app.post('/api/restart', async (c) => {
    await bodyOf(c, Nothing)
    const by = c.get('actor')
    log.info({ by: nameOf(by) }, 'a person restarts the service')
    options.core.noteRestart(by)
    options.restart()
    return c.json({ ok: true }, 202)
  })
  actRoutes(app, options)
  commandRoutes(app, options)
  acceptanceRoutes(app, options)
  return app
}

/** `GET /api/state`. */
function stateOf({ hubId, core, sync, links, waitsToLeave }: LocalApiOptions) {
  return {
    hub_id: hubId,
    waits_to_leave: waitsToLeave?.() ?? null,
    alarms: core.alarms(),
    held: core.held(),
    health: core.health(),
    readings: core.readings(),
    orders: core.orders(),
    stock: core.stock(),
    unknown_operations: core.unknownOperations(),
    dead_letters: core.deadLetters(),
    links: links(),
    foreign_controllers: core.foreignControllers(),
    acceptance: core.acceptance.state(),
    commands: pageCommands,
    sync: sync.state(),
  } satisfies LocalState
}

function asset(c: Context, { status, headers, body }: AssetAnswer): Response {
  return c.body(body, status, headers)
}

const answer = (c: Context, error: LocalError): Response => c.json(error.body(), error.status)

const Begin = z.strictObject({
  by: z.string().min(1).max(200),
  /** Parts as in `parts` of `GET /api/acceptance`; absent for the whole hub. */
  parts: z.array(z.string().max(64)).min(1).max(100).optional(),
  /** Whether rows without a product are tested too. */
  unassigned_rows: z.boolean().default(false),
})
const StepId = z.string().max(64)
/** One step, or several in their order. */
const steps = { step: StepId.optional(), steps: z.array(StepId).min(1).max(200).optional() }
const Steps = z.strictObject(steps).refine(isOneOfTwo, { error: 'either step or steps is needed' })
const Decide = z
  .strictObject({
    ...steps,
    verdict: z.enum(['passed', 'failed']),
    remark: z.string().max(500).default(''),
  })
  .refine(isOneOfTwo, { error: 'either step or steps is needed' })

interface StepNames {
  step?: string | undefined
  steps?: string[] | undefined
}
function isOneOfTwo({ step, steps }: StepNames): boolean {
  return (step === undefined) !== (steps === undefined)
}
const idsOf = ({ step, steps }: StepNames): string[] => steps ?? [step!]

/** The guided acceptance of the hub by a technician. */
function acceptanceRoutes(app: LocalApp, { core }: { core: { acceptance: HubAcceptance } }): void {
  app.get('/api/acceptance', (c) => c.json(acceptanceOf(core.acceptance)))
  app.get('/api/acceptance/:id', (c) => {
    const protocol = core.acceptance.protocol(parse(z.uuid(), c.req.param('id'), 'id'))
    if (!protocol) throw new LocalError('not_found')
    return c.json(protocol)
  })
  app.post('/api/acceptance/begin', async (c) => {
    const { by: name, parts, unassigned_rows: withUnassignedRows } = await bodyOf(c, Begin)
    return done(c, core.acceptance.begin(name, parts ?? null, { by: c.get('actor'), withUnassignedRows }))
  })
  app.post('/api/acceptance/step', async (c) => {
    return done(c, core.acceptance.beginSteps(idsOf(await bodyOf(c, Steps)), c.get('actor')))
  })
  app.post('/api/acceptance/stop', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.stop())
  })
  app.post('/api/acceptance/decide', async (c) => {
    const { verdict, remark, ...names } = await bodyOf(c, Decide)
    return done(c, core.acceptance.decide(idsOf(names), verdict, remark))
  })
  app.post('/api/acceptance/end', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.end(c.get('actor')))
  })
}

/** `GET /api/acceptance`. */
const acceptanceOf = (acceptance: HubAcceptance) => ({
  protocol: acceptance.protocol(),
  parts: acceptance.parts(),
  kept: acceptance.kept(),
})
