import type { Context } from 'hono'
import { z } from 'zod'
import { Location } from '../../protocol/model/location.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import {
  type CommandBody,
  commandNames,
  commandRow,
  type PageAction,
} from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import type { HubCore, LocalOutcome } from '../core/hub-core.ts'
import { bodyOf, done, Nothing, parse } from './bodies.ts'
import { LocalError } from './local-error.ts'
import { motionsOf } from './motions.ts'
import { nameOf, type LocalApp, type LocalContext } from './login-routes.ts'

/** The hub validates it against the row, like the cloud. */
const units = z.number()

const Settle = z.strictObject({ happened: z.boolean() })
/** With an id an entry may be sent again: the hub books each id once. */
const id = z.uuid().optional()
/** The hub where a person entered it. A telephone meets several hubs at one address. */
const hub_id = z.int().optional()
/** `age_ms`: milliseconds since the person counted or filled the row. A page without a network sends its entries later. */
const Units = z.strictObject({
  location: Location,
  units,
  id,
  hub_id,
  age_ms: z.int().min(0).max(604_800_000).default(0),
})
/** `for_ms`: milliseconds for which the door stays unlocked; the hub's own limit also applies. */
const Unlock = z.strictObject({ for_ms: z.int().min(1000).max(86_400_000).default(30_000) })
const Hold = z.strictObject({ held: z.boolean() })

const OperationId = z.uuid()
/** A part's number in a path. */
const PartNumber = z
  .string()
  .regex(/^[1-9]$/)
  .transform(Number)
const LetterId = z
  .string()
  .regex(/^[1-9]\d{0,14}$/)
  .transform(Number)
const ControllerId = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/)
const DoorName = z.string().regex(/^(main|fridge_[1-8]_(left|middle|right))$/)

export interface ActOptions {
  hubId: number
  core: Pick<
    HubCore,
    | 'hold'
    | 'settle'
    | 'count'
    | 'restock'
    | 'unlockDoor'
    | 'confirmFridge'
    | 'takeOverController'
    | 'replayDeadLetters'
    | 'dropDeadLetter'
  >
  log: Log
}

/** Routes for reports and immediate actions of people. */
export function actRoutes(app: LocalApp, { hubId, core, log }: ActOptions): void {
  /** Logs a person's action, and answers with its outcome. */
  function answered(c: LocalContext, about: object, outcome: LocalOutcome, what = 'local command'): Response {
    log.info({ ...about, ...outcome, by: nameOf(c.get('actor')) }, what)
    return done(c, outcome)
  }
  async function entryOf<T extends z.ZodType<{ hub_id?: number | undefined }>>(c: LocalContext, schema: T) {
    const entry = await bodyOf(c, schema)
    if (entry.hub_id !== undefined && entry.hub_id !== hubId) throw new LocalError('other_hub')
    return entry
  }

  app.post('/api/hold/orders', async (c) => {
    const { held } = await bodyOf(c, Hold)
    return answered(c, { held, what: 'orders' }, core.hold('orders', held, c.get('actor')))
  })
  app.post('/api/bins/:number/hold', async (c) => {
    const bin = parse(PartNumber, c.req.param('number'), 'number')
    const { held } = await bodyOf(c, Hold)
    return answered(c, { held, bin }, core.hold(bin, held, c.get('actor')))
  })
  app.post('/api/operations/:id/settle', async (c) => {
    const id = parse(OperationId, c.req.param('id'), 'id')
    const { happened } = await bodyOf(c, Settle)
    return answered(c, { operation: id, happened }, core.settle(id, happened, c.get('actor')))
  })
  app.post('/api/stock/count', async (c) => {
    const { location, units, id, age_ms: ageMs } = await entryOf(c, Units)
    const outcome = core.count(location, units, { by: c.get('actor'), id, ageMs })
    return answered(c, { ...location, counted: units, ...(ageMs > 0 && { ageMs }) }, outcome)
  })
  app.post('/api/stock/restock', async (c) => {
    const { location, units, id, age_ms: ageMs } = await entryOf(c, Units)
    const outcome = core.restock(location, units, { by: c.get('actor'), id, ageMs })
    return answered(c, { ...location, restocked: units, ...(ageMs > 0 && { ageMs }) }, outcome)
  })
  app.post('/api/doors/:door/unlock', async (c) => {
    const door = parse(DoorName, c.req.param('door'), 'door')
    const { for_ms: forMs } = await bodyOf(c, Unlock)
    return answered(c, { door, forMs }, core.unlockDoor(door, forMs, c.get('actor')))
  })
  app.post('/api/fridges/:number/confirm', async (c) => {
    const fridge = parse(PartNumber, c.req.param('number'), 'number')
    await bodyOf(c, Nothing)
    return answered(c, { fridge }, core.confirmFridge(fridge, c.get('actor')))
  })
  app.post('/api/controllers/:id/take-over', async (c) => {
    const id = parse(ControllerId, c.req.param('id'), 'id')
    await bodyOf(c, Nothing)
    return answered(c, { controller: id }, core.takeOverController(id, c.get('actor')))
  })
  app.post('/api/dead-letters/replay', async (c) => {
    await bodyOf(c, Nothing)
    return answered(
      c,
      {},
      core.replayDeadLetters(c.get('actor')),
      'local command: the hub requests all data from the cloud',
    )
  })
  app.post('/api/dead-letters/:id/drop', async (c) => {
    const id = parse(LetterId, c.req.param('id'), 'id')
    await bodyOf(c, Nothing)
    return answered(c, { deadLetter: id }, core.dropDeadLetter(id, c.get('actor')))
  })
}

export interface CommandOptions {
  core: Pick<HubCore, 'operate'>
  clock: Clock
  /** Milliseconds that a motion may take before its caller gets `timeout`. */
  motionTimeoutMs: number
  log: Log
}

/** Commands of bins and fridges, executed as a person's: the answer waits for the result. */
export function commandRoutes(app: LocalApp, options: CommandOptions): void {
  async function command(c: LocalContext, body: CommandBody): Promise<Response> {
    const result = await operate(options, body, c.get('actor'))
    const { outcome, reason } = result
    options.log.info({ ...body, outcome, reason, by: nameOf(c.get('actor')) }, 'local command')
    return moved(c, result)
  }
  for (const name of commandNames) {
    const { page, parameters } = commandRow(name)
    if (page === undefined) continue
    const inPath = [...page.path.matchAll(/\{(\w+)\}/g)].map(([, key]) => [key!, true] as const)
    const Path = z.object(parameters).pick(Object.fromEntries(inPath))
    const Body = z.object(parameters).omit(Object.fromEntries(inPath)).strict()
    app.post(`/api/${page.path.replace(/\{(\w+)\}/g, ':$1')}`, async (c) => {
      const body = await bodyOf(c, withDefaults(Body, page.defaults))
      const numbers = inPath.map(([key]) => [key, parse(PartNumber, c.req.param(key), key)])
      return command(c, { name, ...parse(Path, Object.fromEntries(numbers), 'path'), ...body } as CommandBody)
    })
  }
}

/** An absent field of the body gets its default. */
const withDefaults = <T extends z.ZodType>(schema: T, defaults: PageAction['defaults'] = {}) =>
  z.preprocess(
    (given) => (typeof given === 'object' && !Array.isArray(given) ? { ...defaults, ...given } : given),
    schema,
  )

/** Resolves with the result, or rejects after `motionTimeoutMs` per motion. */
function operate(
  { core, clock, motionTimeoutMs }: CommandOptions,
  body: CommandBody,
  by: LocalActor,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(motionsOf(body) * motionTimeoutMs, () => reject(new LocalError('timeout')))
    const onResult = (result: CommandResult): void => {
      cancel()
      resolve(result)
    }
    core.operate(body, onResult, by)
  })
}

function moved(c: Context, { outcome, reason, data }: CommandResult): Response {
  if (outcome === 'executed') return c.json({ ok: true, ...data })
  throw new LocalError(outcome, { reason, ...data })
}
