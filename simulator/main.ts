import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { serve } from '@hono/node-server'
import * as files from 'node:fs'
import type { Server } from 'node:http'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { boundServer, serverOptions } from '../protocol/model/bound-server.ts'
import { formatGpioAddress, parseGpioAddress } from '../protocol/gpio/socket.ts'
import { urlHost } from '../protocol/model/address.ts'
import { hostCheck } from '../protocol/model/allowed-hosts.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Clock, Runtime } from '../protocol/model/runtime.ts'
import { helpText, readSettings } from '../protocol/model/program-settings.ts'
import { progressOn } from '../protocol/model/progress.ts'
import { stopper } from '../protocol/model/stopping.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { createConsole } from './console/http.ts'
import { startRepl } from './console/repl.ts'
import { seededRandom } from './faults/faults.ts'
import { Fleet } from './fleet.ts'
import { simulatorAt } from './interface/client.ts'
import { startGpioSocketServer } from './mounts/gpio/socket-server.ts'
import { serveBoard } from './mounts/board/socket-server.ts'
import { mountPty, mountTcp, tcpAddress } from './mounts/serial-ports.ts'
import { packageRoot } from './package-root.ts'
import { scaledTiming } from './physics/motion.ts'
import { scenarioCommand } from './scenarios/command.ts'
import { createDesk } from './scenarios/desk.ts'
import { folderScenarios } from './scenarios/shelf.ts'
import {
  exposed,
  openBoards,
  portPath,
  readHardware,
  readShelves,
  SettingError,
  simulatorSettings,
  type SimulatorSettings,
} from './settings.ts'
import { SimulatedHub } from './simulated-hub.ts'
import { folderStorage } from './storage/append-log.ts'
import { folderShelf } from './storage/world-shelf.ts'

const usage = `npm run simulator -- [--config FILE] [--help [--all]]
npm run simulator -- --attach URL
npm run simulator -- scenario run FILE… [--report FILE] [--attach URL] [--set name=value]
npm run simulator -- scenario check FILE…

The hardware of one or more hubs, in software. --attach: the console of a simulator that runs, the demo's too. scenario: runs
scenarios, at a simulator that runs or at a demo of their own; its exit status is 0 where all have passed.`

async function main(): Promise<void> {
  const [command, ...rest] = process.argv.slice(2)
  if (command === 'scenario') return scenarioCommand(rest, systemRuntime())
  try {
    const { config, help, all, attach } = readArguments()
    if (help) process.stdout.write(helpText(usage, simulatorSettings, all))
    else if (attach !== undefined) attachTo(attach)
    else await run(settings(config))
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}

function readArguments() {
  try {
    const text = { type: 'string' } as const
    const flag = { type: 'boolean' } as const
    return parseArgs({ options: { config: text, attach: text, help: flag, all: flag } }).values
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${usage}`)
  }
}

function settings(config: string | undefined): SimulatorSettings {
  let file: { path: string; text: string } | undefined
  if (config !== undefined) {
    try {
      file = { path: config, text: files.readFileSync(config, 'utf8') }
    } catch (error) {
      throw new SettingError(`--config: ${(error as Error).message}`)
    }
  }
  const result = readSettings(simulatorSettings, process.env, file)
  const problems = result.ok ? exposed(result.settings) : result.problems
  if (result.ok && problems.length === 0) return result.settings
  throw new SettingError(problems.join('\n'))
}

/** Opens a terminal at a running simulator. */
function attachTo(url: string): void {
  if (!URL.canParse(url))
    throw new SettingError(`--attach: ${url} is no address; the demo's is http://127.0.0.1:8082`)
  startRepl(simulatorAt(url), {
    clock: systemRuntime().clock,
    input: process.stdin,
    output: process.stdout,
    onExit: () => {},
  })
}

/** Reads the token at each call: the hub may start later and make its token then. */
function readLogin({ HUB_URL: url, HUB_TOKEN_FILE: path }: SimulatorSettings) {
  if (url === undefined || path === undefined || !files.existsSync(path)) return undefined
  return { url, token: files.readFileSync(path, 'utf8').trim() }
}

async function run(settings: SimulatorSettings): Promise<void> {
  const inTerminal = process.stdin.isTTY
  const log = pino(
    { level: inTerminal ? 'warn' : settings.LOG_LEVEL, name: 'simulator' },
    pino.destination(2),
  )
  const runtime = systemRuntime()
  const { clock } = runtime
  const shelves = readShelves(settings)
  const described = readHardware(settings)
  const firstHubId = described[0]!.hubId
  const mounts = new Mounts({ settings, clock, log, firstHubId, boards: openBoards(settings, described) })
  const fleet = openFleet(settings, runtime, log, mounts)
  // First: the process that has the port has the data folder too, and nothing in it changes before.
  const { server, simulator } = await serveConsole({ settings, runtime, log, fleet, firstHubId })
  const progress = progressOn(process.stderr, clock)
  for (const [index, hardware] of described.entries()) {
    progress.show(`making hub ${hardware.hubId}, ${index + 1} of ${described.length}`)
    await fleet.add(hardware, index === 0 ? shelves : undefined)
  }
  progress.clear()
  const address = server.address()
  const bound = typeof address === 'object' && address ? address.port : settings.SIMULATOR_PORT
  process.stdout.write(`simulator ready: http://${urlHost(settings.SIMULATOR_HOST)}:${bound}\n`)
  const stop = stopper({
    clock,
    log,
    timeoutMs: settings.shutdownTimeoutMs,
    async stop() {
      server.close()
      await fleet.close()
    },
    exit: (code) => process.exit(code),
  })
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  if (inTerminal)
    startRepl(simulator, {
      clock,
      input: process.stdin,
      output: process.stdout,
      onExit: () => stop('the REPL has ended'),
    })
}

function openFleet(settings: SimulatorSettings, runtime: Runtime, log: Log, mounts: Mounts): Fleet {
  const { SIMULATOR_SPEED: speed, SIMULATOR_SEED: seed } = settings
  const folder = join(resolve(settings.DATA_DIR), 'simulator')
  return new Fleet({
    clock: runtime.clock,
    wireKept: settings.SIMULATOR_WIRE_KEPT,
    storageOf: (hubId) => folderStorage(join(folder, `hub-${hubId}`)),
    worlds: folderShelf(join(folder, 'worlds')),
    make: (hardware, storage, loaded) =>
      new SimulatedHub({
        hardware,
        runtime,
        storage,
        log,
        timing: scaledTiming(speed),
        dropWindowMs: 1000 / speed,
        // Only for random events: boot and memory ids must differ whatever the seed.
        chance: seed === undefined ? undefined : seededRandom(seed),
        loaded,
        openBoards: new Set(mounts.boardsOf(hardware.hubId).keys()),
      }),
    mount: (hub) => mounts.mount(hub),
  })
}

interface ConsoleParts {
  settings: SimulatorSettings
  runtime: Runtime
  log: Log
  fleet: Fleet
  firstHubId: number
}

async function serveConsole({ settings, runtime, log, fleet, firstHubId }: ConsoleParts) {
  const { SIMULATOR_HOST: hostname, SIMULATOR_PORT: port, SIMULATOR_ALLOWED_HOSTS: names } = settings
  const { clock, random } = runtime
  // The REPL and the scenarios use the HTTP interface as every caller does.
  const simulator = simulatorAt('http://127.0.0.1', (url, init) =>
    fetch(new Request(url, { ...init, headers: { ...init.headers, host: '127.0.0.1' } })),
  )
  const { fetch } = createConsole({
    fleet,
    page: pageAssets(files, join(import.meta.dirname, 'console/assets')),
    desk: createDesk({ clock, random, simulator, demoFile: settings.DEMO_FILE }),
    scenarios: folderScenarios(
      join(packageRoot(), 'simulator/scenarios/library'),
      join(resolve(settings.DATA_DIR), 'simulator', 'scenarios'),
    ),
    loginOf: (hubId) => (hubId === firstHubId ? readLogin(settings) : undefined),
    isAllowedHost: hostCheck([urlHost(hostname), ...(names?.split(',') ?? [])]),
    log,
    clock,
    liveMs: settings.SIMULATOR_LIVE_MS,
  })
  const server = serve({ fetch, hostname, port, serverOptions }) as Server
  boundServer(server, settings.bounds, runtime)
  const listening = new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', reject)
  })
  await orSetting('SIMULATOR_PORT', () => listening)
  return { server, simulator }
}

interface MountsOptions {
  settings: SimulatorSettings
  clock: Clock
  log: Log
  /** `GPIO_SOCKET` and `BOARDS` are for this hub. */
  firstHubId: number
  boards: ReturnType<typeof openBoards>
}

type Unmount = () => Promise<void>

/** Mounts the serial lines, GPIO lines and boards of simulated hubs. */
class Mounts {
  readonly #options: MountsOptions
  readonly #dataDir: string

  constructor(options: MountsOptions) {
    this.#options = options
    this.#dataDir = resolve(options.settings.DATA_DIR)
  }

  boardsOf(hubId: number): MountsOptions['boards'] {
    const { firstHubId, boards } = this.#options
    return hubId === firstHubId ? boards : new Map()
  }

  async mount(hub: SimulatedHub): Promise<Unmount> {
    const mounted = [await this.#gpio(hub), ...(await this.#serial(hub)), ...(await this.#boards(hub))]
    return async () => void (await Promise.all(mounted.map((unmount) => unmount())))
  }

  async #serial(hub: SimulatedHub): Promise<Unmount[]> {
    const { log } = this.#options
    const mounted: Unmount[] = []
    for (const wire of hub.wires) {
      const address = tcpAddress(wire.port)
      const link = portPath(this.#dataDir, wire.port)
      const mount = await orSetting(
        `port of controller ${wire.controllerId}`,
        (): Promise<{ close(): Promise<void> }> | { close(): Promise<void> } =>
          address ? mountTcp(wire, address, log) : mountPty(wire, link, log),
      )
      log.info({ controller: wire.controllerId, port: address ? wire.port : link }, 'serial line ready')
      mounted.push(() => mount.close())
    }
    return mounted
  }

  async #boards({ controllers, hardware }: SimulatedHub): Promise<Unmount[]> {
    const { log } = this.#options
    const mounted: Unmount[] = []
    for (const [id, address] of this.boardsOf(hardware.hubId)) {
      const server = await orSetting('BOARDS', () => serveBoard(controllers.get(id)!, { address, log }))
      log.info({ controller: id, socket: formatGpioAddress(server.address) }, 'the board awaits its firmware')
      mounted.push(() => server.close())
    }
    return mounted
  }

  async #gpio({ gpio, hardware: { hubId } }: SimulatedHub): Promise<Unmount> {
    const { settings, clock, log, firstHubId } = this.#options
    const standard = `unix:${join(this.#dataDir, `gpio-${hubId}.sock`)}`
    const text = (hubId === firstHubId && settings.GPIO_SOCKET) || standard
    const address = parseGpioAddress(text)
    if (!address) throw new SettingError(`GPIO_SOCKET: ${text}: must be unix:PATH or tcp:HOST:PORT`)
    const server = await orSetting('GPIO_SOCKET', () =>
      startGpioSocketServer({ bank: gpio, address, clock, log }),
    )
    log.info({ hub: hubId, socket: formatGpioAddress(server.address) }, 'GPIO lines ready')
    return () => server.close()
  }
}

/** Names the setting of an address that cannot be used. */
async function orSetting<T>(setting: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EADDRINUSE' ? `the address is in use (${message})` : message
    throw new SettingError(`${setting}: ${reason}`)
  }
}

await main()
