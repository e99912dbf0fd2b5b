import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import { hubUser } from '../../../protocol/mqtt/topics.ts'
import { type SeedResult, demoPlaces, type DemoPlaces } from '../../../simulator/demo/places.ts'
import { prepareData, unplug } from '../../../simulator/demo/first-start.ts'
import type { Program } from '../../../simulator/demo/supervisor.ts'
import { createCommandTap, type CommandTap } from './command-tap.ts'
import { seedCopies } from '../../support/demo-data.ts'
import { setUpMosquitto } from '../../support/mosquitto-spec.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'
import { environments, quickCloud, quickEdge, type ProgramName } from './plant-settings.ts'
import { freePorts } from '../../support/ports.ts'
import { startProxy, type Proxy } from '../../../simulator/demo/proxy.ts'
import { skewFile, supervise, writeSkew, type Supervised } from './supervised.ts'

export interface PlantOptions {
  runtime: Runtime
  /** An empty folder for all data. */
  folder: string
  /**
   * PostgreSQL, Mosquitto and two cloud processes; or one cloud process with SQLite and an embedded broker.
   */
  kind: { type: 'at-scale'; databaseUrl: string } | { type: 'bare' }
  /** Speed of the mechanisms, relative to real ones. */
  speed: number
  settings?: Partial<Record<'cloud' | 'hub' | 'simulator', Record<string, string>>>
  /** The program that makes the data (default: the present build). */
  seedCommand?: readonly string[]
  /** The command of a program, read at each start (default: the present build). */
  commandOf?: (name: ProgramName) => readonly string[] | undefined
  /** Called when a program ended without a kill, with its exit and its log file. */
  onFailure: (name: ProgramName, how: string, logFile: string) => void
}

/** All programs of one installation: separate processes, each restarted by a supervisor. */
export interface Plant extends Supervised {
  readonly hubId: number
  readonly seed: SeedResult
  readonly places: DemoPlaces
  readonly databaseUrl: string
  readonly cloudUrls: readonly string[]
  readonly simulatorUrl: string
  readonly hubUrl: string
  readonly hubToken: string
  /** The hub's line to the broker. */
  readonly proxy: Proxy
  /** The broker itself, reachable without the proxy. */
  readonly brokerUrl: string
  /** The clouds' line to PostgreSQL. */
  readonly databaseLine: Proxy | undefined
  readonly tap: CommandTap
  /** Shifts a program's wall clock, from its next start on or while it runs; 0 is correct. */
  skew(name: ProgramName, byMs: number): void
  close(): Promise<void>
}

const CLOUD_USER = 'larder-cloud'
export const WRONG_CLOCK = ['test/process/chaos/skewed-clock']

/** Creates the data of an installation; no program runs before `start`. */
export async function createPlant(options: PlantOptions): Promise<Plant> {
  const { runtime, folder, kind } = options
  const places = demoPlaces(folder)
  const isBare = kind.type === 'bare'
  const [edge, simulator, broker, cloudPort] = (await freePorts(4)) as [number, number, number, number]
  const clouds = await freePorts(isBare ? 1 : 2)
  const ports = { edge, simulator, broker, clouds }
  const databaseUrl = isBare ? `sqlite:${places.database}` : kind.databaseUrl
  const cloudPassword = randomHex(runtime.random, 16)
  const cloudMqttUrl = isBare ? undefined : `mqtt://${CLOUD_USER}:${cloudPassword}@127.0.0.1:${cloudPort}`
  const environment = environments({ places, ports, databaseUrl, cloudMqttUrl })
  const seed = await prepareData({
    places,
    seed: {
      command: options.seedCommand ?? (isBare ? seedCopies() : commandOf('cloud/demo/seed')),
      environment: environment.cloud(0),
    },
    hardwareTemplate: join(packageRoot(), 'simulator/hardware/demo-hub.json'),
  })
  const hubId = seed.hubs[0]!.hub_id
  const tap = createCommandTap(hubId, runtime.clock)
  const proxy = await startProxy({ target: broker, clock: runtime.clock, listenIn: () => tap.listenIn() })
  const databaseLine = isBare ? undefined : await startDatabaseLine(databaseUrl, runtime.clock)
  const hubToken = randomHex(runtime.random, 16)

  const program = (name: ProgramName, command: string[], settings: Record<string, string>) => ({
    name,
    command,
    environment: settings,
    logFile: places.log(name),
  })
  const programs: Program<ProgramName>[] = [
    ...clouds.map((_, index) => {
      const name = `cloud-${index + 1}` as ProgramName
      return program(name, commandOf('cloud/main', WRONG_CLOCK), {
        ...environment.cloud(index),
        ...(databaseLine && { DATABASE_URL: databaseLine.url }),
        ...quickCloud,
        ...options.settings?.cloud,
        CLOCK_SKEW_FILE: skewFile(folder, name),
      })
    }),
    program('simulator', commandOf('simulator/main'), {
      ...environment.simulator(options.speed),
      ...options.settings?.simulator,
    }),
    program('hub', commandOf('edge/main', WRONG_CLOCK), {
      ...environment.hub(proxy.port, seed.mqtt_password, hubToken),
      ...quickEdge,
      ...options.settings?.hub,
      CLOCK_SKEW_FILE: skewFile(folder, 'hub'),
    }),
  ]
  if (!isBare) {
    const others = Object.entries(seed.mqtt_passwords ?? {}).map(([id, password]) => [
      hubUser(Number(id)),
      password,
    ])
    const ofHubs = { ...Object.fromEntries(others), [hubUser(hubId)]: seed.mqtt_password }
    const passwords = { [CLOUD_USER]: cloudPassword, ...ofHubs }
    programs.unshift(program('broker', setUpMosquitto({ folder, hubPort: broker, cloudPort, passwords }), {}))
  }

  const supervised = supervise({
    runtime,
    programs,
    ...(options.commandOf && { commandOf: options.commandOf }),
    onEnded(name) {
      if (name === 'simulator') unplug(places.hardwareFile)
    },
    onFailure: options.onFailure,
  })

  return {
    hubId,
    seed,
    places,
    databaseUrl,
    cloudUrls: clouds.map((port) => `http://127.0.0.1:${port}`),
    simulatorUrl: `http://127.0.0.1:${simulator}`,
    hubUrl: `http://127.0.0.1:${edge}`,
    hubToken,
    proxy,
    brokerUrl: `mqtt://127.0.0.1:${broker}`,
    databaseLine: databaseLine?.proxy,
    tap,
    ...supervised,
    skew: (name, byMs) => writeSkew(folder, name, byMs),
    async close() {
      await Promise.all(
        programs.filter(({ name }) => name !== 'broker').map(({ name }) => supervised.stop(name)),
      )
      await supervised.stop('broker')
      await proxy.close()
      await databaseLine?.proxy.close()
    },
  }
}

/** The clouds' own line to the server, and the database's address through it. */
async function startDatabaseLine(databaseUrl: string, clock: Clock): Promise<{ proxy: Proxy; url: string }> {
  const url = new URL(databaseUrl)
  const proxy = await startProxy({ target: Number(url.port || 5432), host: url.hostname, clock })
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  return { proxy, url: url.href }
}
