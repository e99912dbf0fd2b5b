import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { getCookie } from 'hono/cookie'
import { z } from 'zod'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { Location } from '../../protocol/model/location.ts'
import type { Log } from '../../protocol/model/log.ts'
import { Refusals } from '../../protocol/model/refusals.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { CommandBody, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubCore, LocalOutcome } from '../core/hub-core.ts'
import type { LinkSummary } from '../hardware/controllers.ts'
import type { Recent } from '../recent.ts'
import type { SyncState } from '../sync/sync.ts'

import type { AssetAnswer, PageAssets } from '../../protocol/page-assets.ts'
import { acceptanceRoutes } from './acceptance-routes.ts'
import { bodyOf, done, parse } from './bodies.ts'
import { liveState } from './live.ts'
import { LocalError } from './local-error.ts'
import { COOKIE, cookieHeader, isSameSite, sessionOf, tokenCheck } from './token.ts'

/** What the local API does with the hub. */
export type LocalCore = Pick<
  HubCore,
  | 'operate'
  | 'health'
  | 'settle'
  | 'restock'
  | 'count'
  | 'unlockDoor'
  | 'confirmFridge'
  | 'takeOverController'
  | 'foreignControllers'
  | 'unknownOperations'
  | 'deadLetters'
  | 'replayDeadLetters'
  | 'dropDeadLetter'
  | 'orders'
  | 'stock'
  | 'alarms'
  | 'hold'
  | 'held'
  | 'acceptance'
>

export interface LocalApiOptions {
  hubId: number
  core: LocalCore
  sync: { state(): SyncState }
  links: () => LinkSummary[]
  recent: () => Recent
  hardware: HardwareDescription
  /** Name and version of the service. */
  software: string
  page: PageAssets
  /** How often a page that looks on is told what has changed, in milliseconds. */
  liveMs: number
  /** Ends the service; whoever supervises it starts it again. */
  restart: () => void
  /** Of every path below `/api`: as a bearer token, or in the cookie that `/api/login` gives for it. */
  token: string
  /** By which `Host` it may be called (`hostCheck`). */
  isAllowedHost: (header: string | undefined) => boolean
  clock: Clock
  log: Log
  /** How long a motion may take until its caller hears that no result came. */
  motionTimeoutMs: number
  /** Where a request comes from. */
  addressOf: (c: Context) => string
}

/** Bodies of the local API. Unknown keys are refused: whoever types `unit` for `units` must hear of it. */

const units = (min: number) => z.int().min(min).max(10_000)

const Settle = z.strictObject({ happened: z.boolean() })
const Count = z.strictObject({ location: Location, units: units(0) })
const Restock = z.strictObject({ location: Location, units: units(1) })
/** `for_ms`: how long the door stays unlocked, milliseconds; the hub's own limit holds besides. */
const Unlock = z.strictObject({ for_ms: z.int().min(1000).max(86_400_000).default(30_000) })
const Nothing = z.strictObject({})
const Login = z.strictObject({ token: z.string().max(200) })
const Cycle = z.strictObject({ cycles: z.int().min(1).max(10).default(3) })
const Hold = z.strictObject({ held: z.boolean() })

const OperationId = z.uuid()
const BinNumber = z
  .string()
  .regex(/^[1-4]$/)
  .transform(Number)
const FridgeNumber = z
  .string()
  .regex(/^[1-8]$/)
  .transform(Number)
const LetterId = z
  .string()
  .regex(/^[1-9]\d{0,14}$/)
  .transform(Number)
const ControllerId = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/)
const DoorName = z.string().regex(/^(main|fridge_[1-8]_(left|middle|right))$/)

const MAX_BODY_BYTES = 16 * 1024

/** How long a login lasts, in seconds: a technician's shift. */
const LOGIN_S = 12 * 3600

const motions = {
  open: 'open_bin',
  close: 'close_bin',
  raise: 'raise_bin',
  lower: 'lower_bin',
} as const

/**
 * The hub's own interface, for people who stand before it: it needs neither the cloud nor the internet. All of `/api`
 * takes a token; `front.ts` answers supervisors.
 */
export function createLocalApi(options: LocalApiOptions): Hono {
  const { core, log } = options
  const refusals = new Refusals(['local_token'], options)
  const isToken = tokenCheck(options.token)
  const isSession = tokenCheck(sessionOf(options.token))
  const app = new Hono()

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

  const refuse = (c: Context): never => {
    refusals.note('local_token', options.addressOf(c), { path: c.req.path })
    throw new LocalError('authentication_required')
  }
  app.post('/api/login', async (c) => {
    if (!isSameSite(c.req.raw.headers)) return refuse(c)
    const { token } = await bodyOf(c, Login)
    if (!isToken(token)) return refuse(c)
    c.header('Set-Cookie', cookieHeader(sessionOf(options.token), LOGIN_S, isTls(c)))
    return c.json({ ok: true })
  })
  app.post('/api/logout', (c) => {
    c.header('Set-Cookie', cookieHeader('', 0, isTls(c)))
    return c.json({ ok: true })
  })
  app.use('/api/*', async (c, next) => {
    const bearer = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
    const session = getCookie(c, COOKIE)
    if (bearer !== undefined && isToken(bearer)) return next()
    // A browser sends the cookie by itself, also where another site's page asks it to.
    if (session !== undefined && isSession(session) && isSameSite(c.req.raw.headers)) return next()
    if (c.req.header('authorization') !== undefined || session !== undefined) refuse(c)
    c.header('WWW-Authenticate', 'Bearer realm="larder-hub"')
    throw new LocalError('authentication_required')
  })

  app.get('/api/state', (c) => c.json(stateOf(options)))
  app.get('/api/hardware', (c) => c.json({ hardware: options.hardware, software: options.software }))
  app.get('/api/recent', (c) => c.json(options.recent()))
  app.get('/api/live', (c) =>
    liveState(c, options, () => {
      const { sync, ...state } = stateOf(options)
      // When it was last heard is another at every look: a page needs to know how it stands.
      return { ...state, sync: { phase: sync.phase } }
    }),
  )
  app.post('/api/restart', async (c) => {
    await bodyOf(c, Nothing)
    log.info({}, 'a person restarts the service')
    options.restart()
    return c.json({ ok: true }, 202)
  })
  app.post('/api/hold/orders', async (c) => {
    const { held } = await bodyOf(c, Hold)
    return done(c, core.hold('orders', held))
  })
  app.post('/api/bins/:number/hold', async (c) => {
    const bin = parse(BinNumber, c.req.param('number'), 'number')
    const { held } = await bodyOf(c, Hold)
    return done(c, core.hold(bin, held))
  })
  app.post('/api/operations/:id/settle', async (c) => {
    const id = parse(OperationId, c.req.param('id'), 'id')
    const { happened } = await bodyOf(c, Settle)
    return done(c, core.settle(id, happened))
  })
  app.post('/api/stock/count', async (c) => {
    const { location, units } = await bodyOf(c, Count)
    return done(c, core.count(location, units))
  })
  app.post('/api/stock/restock', async (c) => {
    const { location, units } = await bodyOf(c, Restock)
    return done(c, core.restock(location, units))
  })
  /** Answers with what became of a person's act, and keeps it in the log. */
  function told(c: Context, about: object, outcome: LocalOutcome, what = 'local command'): Response {
    log.info({ ...about, ...outcome }, what)
    return done(c, outcome)
  }
  app.post('/api/doors/:door/unlock', async (c) => {
    const door = parse(DoorName, c.req.param('door'), 'door')
    const { for_ms: forMs } = await bodyOf(c, Unlock)
    return told(c, { door, forMs }, core.unlockDoor(door, forMs))
  })
  app.post('/api/fridges/:number/confirm', async (c) => {
    const fridge = parse(FridgeNumber, c.req.param('number'), 'number')
    await bodyOf(c, Nothing)
    return told(c, { fridge }, core.confirmFridge(fridge))
  })
  app.post('/api/controllers/:id/take-over', async (c) => {
    const id = parse(ControllerId, c.req.param('id'), 'id')
    await bodyOf(c, Nothing)
    return told(c, { controller: id }, core.takeOverController(id))
  })
  app.post('/api/dead-letters/replay', async (c) => {
    await bodyOf(c, Nothing)
    return told(c, {}, core.replayDeadLetters(), 'local command: the cloud is asked to tell everything again')
  })
  app.post('/api/dead-letters/:id/drop', async (c) => {
    const id = parse(LetterId, c.req.param('id'), 'id')
    await bodyOf(c, Nothing)
    return told(c, { deadLetter: id }, core.dropDeadLetter(id))
  })
  /** Carries out a command of the hub as a person's. */
  async function command(c: Context, body: CommandBody): Promise<Response> {
    const result = await operate(options, body)
    log.info({ ...body, outcome: result.outcome, reason: result.reason }, 'local command')
    return moved(c, result)
  }
  const binOf = (c: Context): number => parse(BinNumber, c.req.param('number'), 'number')
  const fridgeOf = (c: Context): number => parse(FridgeNumber, c.req.param('number'), 'number')
  for (const [motion, name] of Object.entries(motions))
    app.post(`/api/bins/:number/${motion}`, async (c) => {
      await bodyOf(c, Nothing)
      return command(c, { name, bin: binOf(c) })
    })
  app.post('/api/bins/:number/cycle', async (c) => {
    const { cycles } = await bodyOf(c, Cycle)
    return command(c, { name: 'cycle_bin', bin: binOf(c), cycles })
  })
  app.post('/api/bins/:number/reconnect', async (c) => {
    await bodyOf(c, Nothing)
    return command(c, { name: 'reconnect_bin', bin: binOf(c) })
  })
  app.post('/api/fridges/:number/reconnect', async (c) => {
    await bodyOf(c, Nothing)
    return command(c, { name: 'reconnect_fridge', fridge: fridgeOf(c) })
  })
  app.post('/api/fridges/:number/lock', async (c) => {
    await bodyOf(c, Nothing)
    return command(c, { name: 'close_fridge', fridge: fridgeOf(c) })
  })
  acceptanceRoutes(app, options)
  return app
}

/** `GET /api/state`. */
export type LocalState = ReturnType<typeof stateOf>

function stateOf({ hubId, core, sync, links }: LocalApiOptions) {
  return {
    hub_id: hubId,
    alarms: core.alarms(),
    held: core.held(),
    health: core.health(),
    orders: core.orders(),
    stock: core.stock(),
    unknown_operations: core.unknownOperations(),
    dead_letters: core.deadLetters(),
    links: links(),
    foreign_controllers: core.foreignControllers(),
    acceptance: core.acceptance.state(),
    sync: sync.state(),
  }
}

const isTls = (c: Context): boolean => new URL(c.req.url).protocol === 'https:'

function asset(c: Context, { status, headers, body }: AssetAnswer): Response {
  return c.body(body, status, headers)
}

/** Resolves with the result, or rejects after `motionTimeoutMs`. */
function operate(
  { core, clock, motionTimeoutMs }: LocalApiOptions,
  body: CommandBody,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(motionTimeoutMs, () => reject(new LocalError('timeout')))
    core.operate(body, (result) => {
      cancel()
      resolve(result)
    })
  })
}

function moved(c: Context, { outcome, reason, data }: CommandResult): Response {
  if (outcome === 'executed') return c.json({ ok: true, ...data })
  throw new LocalError(outcome, { reason, ...data })
}

const answer = (c: Context, error: LocalError): Response => c.json(error.body(), error.status)
