import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Log } from '../../protocol/model/log.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { FleetError, type Fleet } from '../fleet.ts'
import { AnswerError } from '../interface/client.ts'
import { StepError } from '../scenarios/bench.ts'
import { DeskError, type Desk } from '../scenarios/desk.ts'
import { ScenarioError, readScenario } from '../scenarios/text.ts'
import { liveRoutes, type LiveOptions } from './live.ts'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import {
  HubBody,
  WorldBody,
  ActBody,
  ChanceBody,
  FaultBody,
  PowerBody,
  LineBody,
  RecordingBody,
  RunBody,
  ScenarioText,
  StepBody,
} from '../interface/requests.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { hubLogin } from './hub-login.ts'
import { Refusal, bodyOf, stationOf, numberOf } from './request-parts.ts'
import { faultKinds } from '../faults/fault-types.ts'
import type { Json } from '../scenarios/placeholders.ts'
import { type StepKind, ScenarioName } from '../scenarios/schema.ts'
import { crc16 } from '../../protocol/serial/codec.ts'
import { asJsonLines, asVcd } from '../wire-log.ts'
import type { ScenarioShelf } from '../scenarios/shelf.ts'

const MAX_BODY_BYTES = 16 * 1024
/** The limit for scenarios and runs, which contain a text. */
const MAX_TEXT_BYTES = 256 * 1024
const holdsText = /^\/api\/(scenarios|runs)(\/|$)/

export interface ConsoleOptions
  extends FleetRoutesOptions, Omit<LiveOptions, 'stations'>, Omit<ScenarioRoutesOptions, 'isHub'> {
  page: PageAssets
  /** Whether a request's `Host` is allowed (`hostCheck`). */
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
  // Another site's page must not switch the power off through a technician's browser.
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

/** Answers with the error; unexpected errors are also logged. */
function answer(c: Context, error: Error, log: Log): Response {
  if (error instanceof Refusal)
    return c.json({ error: { code: error.code, message: error.message } }, error.status)
  if (error instanceof ScenarioError)
    return c.json({ error: { code: 'invalid_scenario', message: error.message } }, 422)
  if (notPossible.some((kind) => error instanceof kind))
    return c.json({ error: { code: 'not_possible', message: error.message } }, 409)
  log.error({ error: error.message, stack: error.stack }, 'request failed')
  return c.json(
    { error: { code: 'internal_error', message: 'the simulator failed; its log has the reason' } },
    500,
  )
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

interface FleetRoutesOptions {
  fleet: Fleet
  /** The address and the token of a hub's own page, if known. */
  loginOf: (hubId: number) => { url: string; token: string } | undefined
}

/** The hubs of this program, the logins of their own pages, and their worlds. */
function fleetRoutes(app: Hono, { fleet, loginOf }: FleetRoutesOptions): void {
  const hubOf = (c: Context): SimulatedHub => stationOf(c, fleet.stations).hub

  app.get('/api/hubs', (c) => c.json([...fleet.stations.keys()].map((hub_id) => ({ hub_id }))))
  app.post('/api/hubs', async (c) => {
    const { hub_id, like } = await bodyOf(c, HubBody)
    const model = fleet.stations.get(like)
    if (!model) throw new Refusal(404, 'hub_not_found', `hub ${like} is not simulated here`)
    const { hardware } = (await fleet.add(likeness(model.hub.hardware, hub_id))).hub
    return c.json({ hub_id, hardware }, 201)
  })
  app.get('/api/hubs/:id', (c) => c.json({ hardware: hubOf(c).hardware }))
  app.delete('/api/hubs/:id', async (c) => {
    const { hardware } = hubOf(c)
    await fleet.remove(hardware.hubId)
    return c.json({ hub_id: hardware.hubId, removed: true })
  })
  app.get('/api/hubs/:id/login', (c) => {
    const login = loginOf(hubOf(c).hardware.hubId)
    if (!login)
      throw new Refusal(404, 'login_not_known', 'HUB_URL and HUB_TOKEN_FILE do not say where its own page is')
    return c.json(hubLogin(login.url, login.token))
  })
  app.get('/api/worlds', (c) => c.json(fleet.worlds()))
  app.post('/api/hubs/:id/world', async (c) => {
    const { hubId } = hubOf(c).hardware
    const { action, name = '' } = await bodyOf(c, WorldBody)
    if (action === 'save') fleet.save(hubId, name)
    else if (action === 'load') await fleet.load(hubId, name)
    else await fleet.reset(hubId)
    return c.json({ action, worlds: fleet.worlds() })
  })
}

/** Another hub with the same hardware and its own links to serial ports. */
function likeness(hardware: HardwareDescription, hubId: number): HardwareDescription {
  const controllers = hardware.controllers.map((one) => ({ ...one, port: `ports/${hubId}/${one.id}` }))
  return { ...hardware, hubId, controllers }
}

/** One hub: its state, its physical events, and actions of people, faults and power. */
function hubRoutes(app: Hono, { stations, desk }: Pick<LiveOptions, 'stations' | 'desk'>): void {
  const hubOf = (c: Context): SimulatedHub => stationOf(c, stations).hub
  /** For a recording; as JSON, so that absent keys are dropped. */
  const note = (c: Context, kind: StepKind, what: object | string): void =>
    desk.note(hubOf(c).hardware.hubId, kind, JSON.parse(JSON.stringify(what)) as Json)

  app.get('/api/hubs/:id/state', (c) => c.json(hubOf(c).state()))
  app.get('/api/hubs/:id/actuations', (c) => c.json(hubOf(c).actuations(numberOf(c, 'after'))))

  app.get('/api/hubs/:id/faults/types', (c) => {
    hubOf(c)
    return c.json(Object.entries(faultKinds).map(([type, kind]) => ({ type, ...kind })))
  })
  app.get('/api/hubs/:id/faults', (c) => c.json(hubOf(c).faults.active()))
  app.post('/api/hubs/:id/faults', async (c) => {
    const hub = hubOf(c)
    const request = await bodyOf(c, FaultBody)
    try {
      const fault = hub.faults.raise(request)
      note(c, 'fault', request)
      return c.json(fault, 201)
    } catch (error) {
      if (error instanceof RangeError) throw new Refusal(422, 'invalid_fault', error.message)
      throw error
    }
  })
  app.delete('/api/hubs/:id/faults/:fault', (c) => {
    const id = c.req.param('fault')
    const { faults } = hubOf(c)
    const type = faults.active().find((one) => one.id === id)?.type
    if (type === undefined || !faults.clear(id))
      throw new Refusal(404, 'fault_not_found', `there is no active fault ${id}`)
    note(c, 'clear', type)
    return c.json({ id, cleared: true })
  })
  app.delete('/api/hubs/:id/faults', (c) => {
    hubOf(c).faults.clearAll()
    note(c, 'clear', 'all')
    return c.json({ cleared: true })
  })

  app.post('/api/hubs/:id/chance', async (c) => {
    const { seed } = await bodyOf(c, ChanceBody)
    hubOf(c).reseed(seed)
    return c.json({ seed })
  })
  app.post('/api/hubs/:id/act', async (c) => {
    const hub = hubOf(c)
    const wanted = await bodyOf(c, ActBody)
    const result = hub.act(wanted)
    if (!result.ok) throw new Refusal(409, 'not_possible', result.reason)
    note(c, 'act', wanted)
    return c.json({ action: wanted.action, target: wanted.target, ...result.detail })
  })
  app.post('/api/hubs/:id/power', async (c) => {
    const hub = hubOf(c)
    const body = await bodyOf(c, PowerBody)
    const { state, controller, for_ms } = body
    if (controller !== undefined && !hub.controllers.has(controller))
      throw new Refusal(404, 'controller_not_found', `controllers: ${[...hub.controllers.keys()].join(', ')}`)
    hub.power(state, controller, for_ms)
    note(c, 'power', body)
    return c.json({ state, controllers: hub.state().controllers })
  })
}

/** The traffic of a hub's serial lines and pins: reads and exports it, and sends lines. */
function wireRoutes(app: Hono, { stations, desk }: Pick<LiveOptions, 'stations' | 'desk'>): void {
  app.get('/api/hubs/:id/wire', (c) => c.json(stationOf(c, stations).wire.entries(numberOf(c, 'after'))))
  app.get('/api/hubs/:id/wire.jsonl', (c) => {
    const { hub, wire } = stationOf(c, stations)
    c.header('Content-Disposition', `attachment; filename="hub-${hub.hardware.hubId}.jsonl"`)
    return c.body(asJsonLines(wire.entries(0)), 200, { 'content-type': 'application/jsonl' })
  })
  app.get('/api/hubs/:id/wire.vcd', (c) => {
    const { hub, wire } = stationOf(c, stations)
    c.header('Content-Disposition', `attachment; filename="hub-${hub.hardware.hubId}.vcd"`)
    return c.body(asVcd(wire.entries(0), hub.gpio.levels()), 200, { 'content-type': 'text/plain' })
  })
  app.post('/api/hubs/:id/wire', async (c) => {
    const { wires, hardware } = stationOf(c, stations).hub
    const { controller, direction, line } = await bodyOf(c, LineBody)
    const wire = wires.find(({ controllerId }) => controllerId === controller)
    if (!wire)
      throw new Refusal(
        404,
        'controller_not_found',
        `controllers: ${wires.map(({ controllerId }) => controllerId).join(', ')}`,
      )
    const whole = withCrc(line)
    if (direction === 'to_hub') wire.toHub(whole)
    else wire.toController(whole)
    desk.note(hardware.hubId, 'line', { controller, direction, line: whole })
    return c.json({ controller, direction, line: whole })
  })
}

/** Adds the CRC to a line without one. */
const withCrc = (line: string): string =>
  /\*[0-9a-f]{4}$/.test(line) ? line : `${line}*${crc16(line).toString(16).padStart(4, '0')}`

interface ScenarioRoutesOptions {
  desk: Desk
  scenarios: ScenarioShelf
  isHub: (hubId: number) => boolean
}

/** Routes of scenarios: storage, runs, recording, and single steps. */
function scenarioRoutes(app: Hono, { desk, scenarios, isHub }: ScenarioRoutesOptions): void {
  function nameOf(c: Context): string {
    const name = ScenarioName.safeParse(c.req.param('name'))
    if (name.success) return name.data
    throw new Refusal(422, 'validation_error', `a scenario's name ${name.error.issues[0]!.message}`)
  }
  function textOf(name: string): string {
    const text = scenarios.read(name)
    if (text === undefined) throw new Refusal(404, 'scenario_not_found', `there is no scenario ${name}`)
    return text
  }
  function onHub(hubId: number): number {
    if (!isHub(hubId)) throw new Refusal(404, 'hub_not_found', `hub ${hubId} is not simulated here`)
    return hubId
  }

  app.get('/api/scenarios', (c) => c.json(scenarios.list()))
  app.get('/api/scenarios/:name', (c) => {
    const name = nameOf(c)
    return c.json({ name, text: textOf(name) })
  })
  app.put('/api/scenarios/:name', async (c) => {
    const name = nameOf(c)
    const { text } = await bodyOf(c, ScenarioText)
    const scenario = readScenario(text)
    if (scenario.name !== name)
      throw new Refusal(422, 'invalid_scenario', `its name in the file is ${scenario.name}, not ${name}`)
    scenarios.write(name, text)
    return c.json({ name, saved: true })
  })
  app.delete('/api/scenarios/:name', (c) => {
    const name = nameOf(c)
    if (!scenarios.remove(name))
      throw new Refusal(404, 'scenario_not_found', `there is no scenario ${name} of your own`)
    return c.json({ name, removed: true })
  })

  app.get('/api/runs', (c) => c.json(desk.runs()))
  app.get('/api/runs/:run', (c) => {
    const run = desk.runs().find(({ id }) => String(id) === c.req.param('run'))
    if (!run) throw new Refusal(404, 'run_not_found', `there is no run ${c.req.param('run')}`)
    return c.json(run)
  })
  app.post('/api/runs', async (c) => {
    const { hub_id, name, text, parameters } = await bodyOf(c, RunBody)
    if ((name === undefined) === (text === undefined))
      throw new Refusal(422, 'validation_error', 'a run needs the name of a scenario, or its text')
    return c.json(desk.start(onHub(hub_id), text ?? textOf(name!), parameters), 201)
  })
  app.delete('/api/runs/:run', (c) => {
    const id = Number(c.req.param('run'))
    if (!desk.stop(id)) throw new Refusal(404, 'run_not_found', `run ${c.req.param('run')} is not under way`)
    return c.json({ id, stopping: true })
  })

  app.post('/api/steps', async (c) => {
    const { hub_id, step } = await bodyOf(c, StepBody)
    return c.json((await desk.doNow(onHub(hub_id), step)) as object)
  })

  app.post('/api/recording', async (c) => {
    const { hub_id } = await bodyOf(c, RecordingBody)
    await desk.record(onHub(hub_id))
    return c.json(desk.recording(), 201)
  })
  app.get('/api/recording', (c) => c.json(desk.recording()))
  /** Ends the recording. The answer contains the scenario, which is not saved. */
  app.delete('/api/recording', async (c) => {
    const name = c.req.query('name') ?? 'recorded'
    if (!ScenarioName.safeParse(name).success)
      throw new Refusal(422, 'validation_error', "a scenario's name is small letters, digits and dashes")
    return c.json({ name, text: await desk.finish(name) })
  })
}
