import type { ChildProcess } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { digestOf } from '../../cloud/platform/credentials/secrets.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import type { Scope } from '../../protocol/model/scopes.ts'
import { ownHub } from '../world/seeds.ts'
import { createPostgresDatabase } from '../process/chaos/postgres.ts'
import { freePorts } from '../support/ports.ts'
import { MOSQUITTO_PASSWORD, startMosquitto } from '../support/mosquitto.ts'
import { answer, dismiss, launch } from './children.ts'
import { quantile, type Figure, type Section } from './figures.ts'
import { processorMs, residentMb } from './process-figures.ts'
import { serveCloud, type ServedCloud } from './served-cloud.ts'

export interface FleetBench {
  runtime: Runtime
  folder: string
  hubs: number
  /** How long the fleet is observed while it only sends heartbeats. */
  idleSeconds: number
}

/** Messages to the hubs' process, which answers each with its state. */
export type FleetOrder = { type: 'start' | 'state' } | { type: 'report'; entries: number }
export interface FleetState {
  welcomed: number
  /** Unacknowledged entries of all hubs. */
  pending: number
  cpuMs: number
}

/** Pending entries of each hub when the cloud returns. */
const ENTRIES = 20
const HEARTBEAT_MS = 15_000
const PATIENCE_MS = 180_000
const CALL_PAUSE_MS = 50
/** The clouds are idle when each uses less than this per second. */
const REST_MS = 60
const KEYS = 8
const QUESTION = '/api/v1/owners/hub_inventory/?hub_id=1'

/** A running cloud that can be killed and restarted. */
interface Installation {
  name: string
  brokerUrl: string
  password: string
  /** API keys. */
  keys: readonly string[]
  clouds: ServedCloud[]
  blows: { name: string; strike: () => Promise<void> }[]
  end: () => Promise<void>
}

/**
 * Measures a fleet of hubs at the real cloud programs after kills of the cloud and of the broker. Figures:
 * the time until all hubs are welcomed and their entries applied, the duration of API calls meanwhile, and
 * the cost of a hub.
 */
export async function benchFleet(options: FleetBench): Promise<Section> {
  const { hubs } = options
  const figures: Figure[] = []
  const notes = [
    `each hub has ${ENTRIES} entries waiting; hubs are the real sync over real MQTT in one process, on this same machine`,
    `of a hub that only beats: what a heartbeat takes with all else that its hub sets off (each minute a hello, as nothing comes from the cloud), less what the clouds take without hubs`,
  ]
  await measure(options, await embedded(options), figures)
  const postgres = process.env['TEST_POSTGRES_URL']
  if (postgres === undefined) notes.push('without TEST_POSTGRES_URL nothing was measured on PostgreSQL')
  else await measure(options, await external(options, postgres), figures)
  return { title: `${hubs} hubs that connect at once`, figures, notes }
}

/** SQLite and the broker inside the one process. */
async function embedded({ runtime, folder: parent, hubs }: FleetBench): Promise<Installation> {
  const folder = join(parent, 'embedded')
  mkdirSync(folder)
  const database = join(folder, 'fleet.sqlite')
  const password = 'a secret'
  const keys = await seedFleet(runtime, `sqlite:${database}`, hubs, password)
  const [port, mqttPort] = (await freePorts(2)) as [number, number]
  const start = (): Promise<ServedCloud> =>
    serveCloud({
      clock: runtime.clock,
      folder: join(folder, 'embedded'),
      database,
      environment: { PORT: `${port}`, MQTT_PORT: `${mqttPort}` },
    })
  const clouds = [await start()]
  const killCloud = async (): Promise<void> => {
    await clouds[0]!.kill()
    clouds[0] = await start()
  }
  return {
    name: 'SQLite, embedded broker',
    brokerUrl: `mqtt://127.0.0.1:${mqttPort}`,
    password,
    keys,
    clouds,
    blows: [{ name: 'cloud killed', strike: killCloud }],
    end: () => clouds[0]!.stop(),
  }
}

/** PostgreSQL, Mosquitto, and two processes. */
async function external({ runtime, folder, hubs }: FleetBench, postgresUrl: string): Promise<Installation> {
  const postgres = await createPostgresDatabase(postgresUrl, runtime)
  const keys = await seedFleet(runtime, postgres.url, hubs, MOSQUITTO_PASSWORD)
  const mosquitto = await startMosquitto(Array.from({ length: hubs }, (_, index) => `hub-${index + 1}`))
  const ports = await freePorts(2)
  const start = (index: number): Promise<ServedCloud> =>
    serveCloud({
      clock: runtime.clock,
      folder: join(folder, `external-${index}`),
      database: '',
      environment: {
        PORT: `${ports[index]}`,
        DATABASE_URL: postgres.url,
        MQTT_URL: mosquitto.cloudUrl,
      },
    })
  const clouds = [await start(0), await start(1)]
  return {
    name: 'PostgreSQL, Mosquitto, two processes',
    brokerUrl: `mqtt://127.0.0.1:${mosquitto.hubPort}`,
    password: MOSQUITTO_PASSWORD,
    keys,
    clouds,
    blows: [
      {
        name: 'one process killed',
        async strike() {
          await clouds[1]!.kill()
          clouds[1] = await start(1)
        },
      },
      {
        name: 'broker killed',
        async strike() {
          await mosquitto.kill()
          await mosquitto.start()
        },
      },
    ],
    async end() {
      for (const cloud of clouds) await cloud.stop()
      await mosquitto.remove()
      await postgres.remove()
    },
  }
}

/** Returns API keys, because each key has a rate limit. */
export async function seedFleet(
  runtime: Runtime,
  url: string,
  count: number,
  password: string,
  keysOf: { count: number; scopes: readonly Scope[] } = { count: KEYS, scopes: ['inventory:read'] },
): Promise<string[]> {
  const db = openDatabase({ url })
  await db.migrate()
  const digest = digestOf(password)
  await db.kysely.insertInto('owners').values({ id: 1, name: 'One' }).execute()
  await db.transact(async (tx) => {
    for (let hubId = 1; hubId <= count; hubId += 1)
      await tx.q.insertInto('hubs').values(ownHub(hubId, digest)).execute()
  })
  const keys: string[] = []
  for (let n = 0; n < keysOf.count; n += 1) {
    const request = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    const issued = await issueApiKey(db.kysely, runtime, { ...request, scopes: keysOf.scopes })
    keys.push(issued.key)
  }
  await db.close()
  return keys
}

async function measure(
  { runtime, hubs: count, idleSeconds }: FleetBench,
  installation: Installation,
  figures: Figure[],
): Promise<void> {
  const { clock } = runtime
  const { name, clouds, blows, keys } = installation
  const hubs = launch('fleet-hubs', [`${count}`, installation.brokerUrl, installation.password])
  const figure = (what: string, value: number, unit: string, aim?: string): void =>
    void figures.push({ name: `${name}: ${what}`, values: [value], unit, ...(aim && { aim }) })
  const cpu = (): number => clouds.reduce((sum, { pid }) => sum + processorMs(pid), 0)
  const enter = (phase: string): Promise<unknown> =>
    Promise.all(clouds.map((cloud) => cloud.phase(`${name} ${phase}`.replaceAll(/\W+/g, '-'))))
  const resident = (): number => clouds.reduce((sum, { pid }) => sum + residentMb(pid), 0)

  /** Waits until the work after a start and after new hubs has ended. */
  async function rest(): Promise<void> {
    const end = clock.monotonic() + PATIENCE_MS
    for (let isBusy = true; isBusy && clock.monotonic() < end;) {
      const from = cpu()
      await sleep(clock, 1000)
      isBusy = cpu() - from > REST_MS * clouds.length
    }
  }

  /** Waits until all hubs are welcomed and their entries are applied; calls the API during that time. */
  async function converge(what: string, from: number): Promise<void> {
    const times: number[] = []
    const ends = new AbortController()
    const calls = (async () => {
      for (let n = 0; !ends.signal.aborted; n += 1) {
        const began = clock.monotonic()
        const url = `http://127.0.0.1:${clouds[n % clouds.length]!.port}${QUESTION}`
        const isAnswered = await fetch(url, { headers: { 'X-API-Key': keys[n % KEYS]! } }).then(
          ({ ok }) => ok,
          () => false,
        )
        if (isAnswered) times.push(clock.monotonic() - began)
        await sleep(clock, CALL_PAUSE_MS)
      }
    })()
    let state: FleetState
    let welcomedMs: number | undefined
    do {
      await sleep(clock, 100)
      state = await tell(hubs, { type: 'state' })
      if (state.welcomed === count) welcomedMs ??= clock.monotonic() - from
    } while ((state.pending > 0 || state.welcomed < count) && clock.monotonic() - from < PATIENCE_MS)
    const drainedMs = clock.monotonic() - from
    ends.abort()
    await calls
    figure(`${what}, welcomed`, state.welcomed, 'hubs', `${count}`)
    figure(`${what}, until all are welcomed`, (welcomedMs ?? Infinity) / 1000, 's')
    figure(
      `${what}, until all is brought`,
      (state.pending === 0 ? drainedMs : Infinity) / 1000,
      's',
      'below 60',
    )
    if (times.length > 0)
      figure(`${what}, a call of the API meanwhile, p99`, quantile(times, 0.99), 'ms', 'at most 500')
  }

  try {
    await rest()
    await enter('empty')
    const emptyFrom = cpu()
    await sleep(clock, idleSeconds * 1000)
    const emptyMs = cpu() - emptyFrom
    figure('processor time of a second without hubs', emptyMs / idleSeconds, 'ms')
    const emptyMb = resident()
    await enter('arrival')
    await tell(hubs, { type: 'report', entries: ENTRIES })
    await tell(hubs, { type: 'start' })
    await converge('first connection', clock.monotonic())
    // The work after the connections has ended.
    await sleep(clock, 2000)
    figure('memory for each hub', ((resident() - emptyMb) * 1000) / count, 'kB')
    await enter('idle')
    const idleFrom = cpu()
    await sleep(clock, idleSeconds * 1000)
    const idleMs = cpu() - idleFrom
    const beats = (count * idleSeconds * 1000) / HEARTBEAT_MS
    figure('processor time for each heartbeat', (idleMs - emptyMs) / beats, 'ms', 'at most 0.1')
    figure('the same, with what the clouds take without hubs', idleMs / beats, 'ms')
    for (const blow of blows) {
      await enter(blow.name)
      const before = clouds.map(({ pid }) => ({ pid, ms: processorMs(pid) }))
      await blow.strike()
      const from = clock.monotonic()
      await tell(hubs, { type: 'report', entries: ENTRIES })
      await converge(blow.name, from)
      const spent = clouds.reduce(
        (sum, { pid }) => sum + processorMs(pid) - (before.find((each) => each.pid === pid)?.ms ?? 0),
        0,
      )
      figure(`${blow.name}, processor time for each hub, start included`, spent / count, 'ms')
    }
  } finally {
    await dismiss(hubs)
    await installation.end()
  }
}

export function tell(hubs: ChildProcess, order: FleetOrder): Promise<FleetState> {
  const answered = answer(hubs)
  hubs.send(order)
  return answered as Promise<FleetState>
}
