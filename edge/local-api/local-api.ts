import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { z } from 'zod'
import { Location } from '../../protocol/model/location.ts'
import type { Log } from '../../protocol/model/log.ts'
import { Refusals } from '../../protocol/model/refusals.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { CommandBody, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubCore, LocalOutcome } from '../core/hub-core.ts'
import type { LinkSummary } from '../hardware/controllers.ts'
import type { SyncState } from '../sync/sync.ts'

import { LocalError } from './local-error.ts'
import { page, pagePolicy } from './page.ts'
import { bearerCheck } from './token.ts'

/** What the local API does with the hub. */
export type LocalCore = Pick<
  HubCore,
  | 'operate'
  | 'health'
  | 'settle'
  | 'restock'
  | 'count'
  | 'unlockDoor'
  | 'takeOverController'
  | 'foreignControllers'
  | 'unknownOperations'
  | 'orders'
  | 'stock'
>

export interface LocalApiOptions {
  hubId: number
  core: LocalCore
  sync: { state(): SyncState }
  links: () => LinkSummary[]
  /** Bearer token of every path below `/api`. */
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

const OperationId = z.uuid()
const BinNumber = z
  .string()
  .regex(/^[1-4]$/)
  .transform(Number)
const ControllerId = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/)
const DoorName = z.string().regex(/^(main|fridge_[1-8]_(left|middle|right))$/)

const MAX_BODY_BYTES = 16 * 1024

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
  const authorized = bearerCheck(options.token)
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
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
  })

  app.get('/', (c) => c.html(page, 200, { 'Content-Security-Policy': pagePolicy }))

  app.use('/api/*', async (c, next) => {
    const given = c.req.header('authorization')
    if (authorized(given)) return next()
    if (given !== undefined) refusals.note('local_token', options.addressOf(c), { path: c.req.path })
    c.header('WWW-Authenticate', 'Bearer realm="larder-hub"')
    throw new LocalError('authentication_required')
  })
  app.use(
    '/api/*',
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new LocalError('payload_too_large')
      },
    }),
  )

  app.get('/api/state', (c) => c.json(stateOf(options)))
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
  app.post('/api/doors/:door/unlock', async (c) => {
    const door = parse(DoorName, c.req.param('door'), 'door')
    const { for_ms: forMs } = await bodyOf(c, Unlock)
    const outcome = core.unlockDoor(door, forMs)
    // No ledger entry reports it: this line is the only record of who was let in.
    log.info({ door, forMs, ...outcome }, 'local command')
    return done(c, outcome)
  })
  app.post('/api/controllers/:id/take-over', async (c) => {
    const id = parse(ControllerId, c.req.param('id'), 'id')
    await bodyOf(c, Nothing)
    const outcome = core.takeOverController(id)
    log.info({ controller: id, ...outcome }, 'local command')
    return done(c, outcome)
  })
  for (const [motion, name] of Object.entries(motions))
    app.post(`/api/bins/:number/${motion}`, async (c) => {
      const bin = parse(BinNumber, c.req.param('number'), 'number')
      await bodyOf(c, Nothing)
      const result = await operate(options, { name, bin })
      log.info({ bin, motion, outcome: result.outcome, reason: result.reason }, 'local command')
      return moved(c, result)
    })
  return app
}

function stateOf({ hubId, core, sync, links }: LocalApiOptions) {
  return {
    hub_id: hubId,
    health: core.health(),
    orders: core.orders(),
    stock: core.stock(),
    unknown_operations: core.unknownOperations(),
    links: links(),
    foreign_controllers: core.foreignControllers(),
    sync: sync.state(),
  }
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

function done(c: Context, outcome: LocalOutcome): Response {
  if (outcome.ok) return c.json({ ok: true })
  throw new LocalError(outcome.reason === 'invalid' ? 'invalid_request' : outcome.reason)
}

async function bodyOf<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  const text = await c.req.text()
  let json: unknown
  try {
    json = text === '' ? {} : JSON.parse(text)
  } catch {
    throw new LocalError('invalid_json')
  }
  return parse(schema, json, 'body')
}

function parse<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => ({ loc: [where, ...path], message }))
  throw new LocalError('invalid_request', { problems })
}

const answer = (c: Context, error: LocalError): Response => c.json(error.body(), error.status)
