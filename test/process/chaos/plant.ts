import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import { hubUser } from '../../../protocol/mqtt/topics.ts'
import { type SeedResult, demoPlaces, type DemoPlaces } from '../../../simulator/demo/places.ts'
import { prepareData, unplug } from '../../../simulator/demo/first-start.ts'
import { Supervisor, type Program } from '../../../simulator/demo/supervisor.ts'
import { createCommandTap, type CommandTap } from './command-tap.ts'
import { setUpMosquitto } from '../../support/mosquitto-spec.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'
import { environments, quickCloud, quickEdge, type ProgramName } from './plant-settings.ts'
import { freePorts } from '../../support/ports.ts'
import { startProxy, type Proxy } from '../../../simulator/demo/proxy.ts'

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
  onFailure(name: ProgramName, how: string, logFile: string): void
}

/** All programs of one installation: separate processes, each restarted by a supervisor. */
export interface Plant {
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
  readonly programs: readonly ProgramName[]
  /** Starts one program, or all programs. */
  start(name?: ProgramName): void
  /** Sends SIGKILL; the supervisor restarts the program. Returns false if it is not running. */
  kill(name: ProgramName): boolean
  /** Sends SIGKILL, and keeps the program dead until `start`. */
  halt(name: ProgramName): Promise<void>
  /** Sends SIGTERM, and keeps the program dead until `start`. */
  stop(name: ProgramName): Promise<void>
  signal(name: ProgramName, signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Shifts a program's wall clock, from its next start on or while it runs; 0 is correct. */
  skew(name: ProgramName, byMs: number): void
  close(): Promise<void>
}

const CLOUD_USER = 'larder-cloud'
const WRONG_CLOCK = ['test/process/chaos/skewed-clock']

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
    seed: { command: options.seedCommand ?? commandOf('cloud/demo/seed'), environment: environment.cloud(0) },
    hardwareTemplate: join(packageRoot(), 'simulator/hardware/demo-hub.json'),
  })
  const hubId = seed.hubs[0]!.hub_id
  const tap = createCommandTap(hubId, runtime.clock)
  const proxy = await startProxy({ target: broker, clock: runtime.clock, listenIn: () => tap.listenIn() })
  const databaseLine = isBare ? undefined : await startDatabaseLine(databaseUrl, runtime.clock)
  const skewFile = (name: ProgramName): string => join(folder, `${name}.skew`)
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
        CLOCK_SKEW_FILE: skewFile(name),
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
      CLOCK_SKEW_FILE: skewFile('hub'),
    }),
  ]
  if (!isBare) {
    const passwords = { [CLOUD_USER]: cloudPassword, [hubUser(hubId)]: seed.mqtt_password }
    programs.unshift(program('broker', setUpMosquitto({ folder, hubPort: broker, cloudPort, passwords }), {}))
  }

  const supervisors = new Map<ProgramName, Supervisor>()
  const pids = new Map<ProgramName, number>()
  const killed = new Set<number>()

  function start(one: Program<ProgramName>): void {
    if (supervisors.has(one.name)) return
    const supervisor = new Supervisor<ProgramName>({
      programs: [{ ...one, command: options.commandOf?.(one.name) ?? one.command }],
      runtime,
      onStarted: (name, pid) => pids.set(name, pid),
      onDied(name, how) {
        const pid = pids.get(name)
        pids.delete(name)
        if (name === 'simulator') unplug(places.hardwareFile)
        if (pid === undefined || !killed.has(pid)) options.onFailure(name, how, one.logFile)
      },
    })
    supervisors.set(one.name, supervisor)
    supervisor.start()
  }

  function kill(name: ProgramName): boolean {
    const pid = pids.get(name)
    if (pid === undefined || killed.has(pid)) return false
    killed.add(pid)
    return process.kill(pid, 'SIGKILL')
  }

  async function end(name: ProgramName): Promise<void> {
    const supervisor = supervisors.get(name)
    supervisors.delete(name)
    await supervisor?.stop()
    pids.delete(name)
  }

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
    programs: programs.map(({ name }) => name),
    start(name) {
      for (const one of programs) if (name === undefined || one.name === name) start(one)
    },
    kill,
    async halt(name) {
      kill(name)
      await end(name)
    },
    stop: end,
    signal: (name, signal) => void process.kill(pids.get(name)!, signal),
    skew(name, byMs) {
      // A rename, so that a reader sees either the old or the new file.
      writeFileSync(`${skewFile(name)}.new`, String(byMs))
      renameSync(`${skewFile(name)}.new`, skewFile(name))
    },
    async close() {
      await Promise.all(programs.filter(({ name }) => name !== 'broker').map(({ name }) => end(name)))
      await end('broker')
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
