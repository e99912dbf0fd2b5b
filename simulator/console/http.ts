import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { faultKinds } from '../faults/fault-types.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { pagePolicy, technicianPage } from './page.ts'
import { ActBody, complaint, FaultBody, PowerBody } from './requests.ts'

const MAX_BODY_BYTES = 16 * 1024

/** An answer that is an error, thrown to where it is written. */
class Refusal extends Error {
  readonly status: 400 | 403 | 404 | 409 | 413 | 422
  readonly code: string
  constructor(status: Refusal['status'], code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export interface ConsoleOptions {
  hubs: ReadonlyMap<number, SimulatedHub>
  /** By which `Host` it may be called (`hostCheck`). */
  isAllowedHost: (header: string | undefined) => boolean
  log: Log
}

/** The simulator's HTTP interface and the technician's page at `/`. */
export function createConsole({ hubs, isAllowedHost, log }: ConsoleOptions): Hono {
  const app = new Hono({ strict: false })

  app.onError((error, c) => {
    if (error instanceof Refusal)
      return c.json({ error: { code: error.code, message: error.message } }, error.status)
    log.error({ error: error.message, stack: error.stack }, 'request failed')
    return c.json(
      { error: { code: 'internal_error', message: 'the simulator failed; its log says why' } },
      500,
    )
  })
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
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
  })
  app.use(
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new Refusal(413, 'payload_too_large', `a body has at most ${MAX_BODY_BYTES} bytes`)
      },
    }),
  )

  function hubOf(c: Context): SimulatedHub {
    const id = c.req.param('id') ?? ''
    const hub = /^\d{1,9}$/.test(id) ? hubs.get(Number(id)) : undefined
    if (!hub)
      throw new Refusal(
        404,
        'hub_not_found',
        `hub ${id} is not simulated here; hubs: ${[...hubs.keys()].join(', ')}`,
      )
    return hub
  }

  app.get('/', (c) => {
    c.header('Content-Security-Policy', pagePolicy)
    return c.html(technicianPage([...hubs.keys()]))
  })
  app.get('/api/hubs', (c) => c.json([...hubs.keys()].map((hub_id) => ({ hub_id }))))
  app.get('/api/hubs/:id/state', (c) => c.json(hubOf(c).state()))
  app.get('/api/hubs/:id/actuations', (c) => {
    const after = c.req.query('after') ?? '0'
    if (!/^\d{1,15}$/.test(after)) throw new Refusal(422, 'validation_error', 'after must be a whole number')
    return c.json(hubOf(c).actuations(Number(after)))
  })

  app.get('/api/hubs/:id/faults/types', (c) => {
    hubOf(c)
    return c.json(Object.entries(faultKinds).map(([type, kind]) => ({ type, ...kind })))
  })
  app.get('/api/hubs/:id/faults', (c) => c.json(hubOf(c).faults.active()))
  app.post('/api/hubs/:id/faults', async (c) => {
    const hub = hubOf(c)
    const request = await bodyOf(c, FaultBody)
    try {
      return c.json(hub.faults.raise(request), 201)
    } catch (error) {
      if (error instanceof RangeError) throw new Refusal(422, 'invalid_fault', error.message)
      throw error
    }
  })
  app.delete('/api/hubs/:id/faults/:fault', (c) => {
    const id = c.req.param('fault')
    if (!hubOf(c).faults.clear(id))
      throw new Refusal(404, 'fault_not_found', `there is no active fault ${id}`)
    return c.json({ id, cleared: true })
  })
  app.delete('/api/hubs/:id/faults', (c) => {
    hubOf(c).faults.clearAll()
    return c.json({ cleared: true })
  })

  app.post('/api/hubs/:id/act', async (c) => {
    const hub = hubOf(c)
    const deed = await bodyOf(c, ActBody)
    const result = hub.act(deed)
    if (!result.ok) throw new Refusal(409, 'not_possible', result.reason)
    return c.json({ action: deed.action, target: deed.target, ...result.detail })
  })
  app.post('/api/hubs/:id/power', async (c) => {
    const hub = hubOf(c)
    const { state, controller, for_ms } = await bodyOf(c, PowerBody)
    if (controller !== undefined && !hub.controllers.has(controller))
      throw new Refusal(404, 'controller_not_found', `controllers: ${[...hub.controllers.keys()].join(', ')}`)
    hub.power(state, controller, for_ms)
    return c.json({ state, controllers: hub.state().controllers })
  })
  return app
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

/** The JSON body, whatever its content type is said to be. */
async function bodyOf<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  const text = await c.req.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'invalid_json', 'the body must be JSON')
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw new Refusal(422, 'validation_error', complaint(parsed.error))
  return parsed.data
}
