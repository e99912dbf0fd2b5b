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
import { mountPty } from './mounts/pty.ts'
import { mountTcp, tcpAddress } from './mounts/tcp.ts'
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

await main()

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

/** A terminal of its own at a simulator that runs. */
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

/** Read when it is asked for: the hub may begin later, and make its token then. */
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
  const dataDir = resolve(settings.DATA_DIR)
  const shelves = readShelves(settings)
  const described = readHardware(settings)
  const boards = openBoards(settings, described)
  const boardsOf = (hubId: number) => (hubId === described[0]!.hubId ? boards : new Map<string, never>())
  const fleet = new Fleet({
    clock: runtime.clock,
    wireKept: settings.SIMULATOR_WIRE_KEPT,
    storageOf: (hubId) => folderStorage(join(dataDir, 'simulator', `hub-${hubId}`)),
    worlds: folderShelf(join(dataDir, 'simulator', 'worlds')),
    make: (hardware, storage, loaded) =>
      new SimulatedHub({
        hardware,
        runtime,
        storage,
        log,
        timing: scaledTiming(settings.SIMULATOR_SPEED),
        dropWindowMs: 1000 / settings.SIMULATOR_SPEED,
        // Only of what happens by chance: boot and memory ids must differ whatever the seed.
        chance: settings.SIMULATOR_SEED === undefined ? undefined : seededRandom(settings.SIMULATOR_SEED),
        loaded,
        openBoards: new Set(boardsOf(hardware.hubId).keys()),
      }),
    mount: async (hub) => {
      const closings = [await mountGpio(hub), ...(await mountSerial(hub)), ...(await mountBoards(hub))]
      return async () => void (await Promise.all(closings.map((close) => close())))
    },
  })

  // First of all: whoever has the port has the data folder too, and nothing of it is touched before.
  const { SIMULATOR_HOST: hostname, SIMULATOR_PORT: port, SIMULATOR_ALLOWED_HOSTS: names } = settings
  const isAllowedHost = hostCheck([urlHost(hostname), ...(names?.split(',') ?? [])])
  // What is typed here and what scenarios do goes the way of all callers.
  const simulator = simulatorAt('http://127.0.0.1', (url, init) =>
    fetch(new Request(url, { ...init, headers: { ...init.headers, host: '127.0.0.1' } })),
  )
  const desk = createDesk({
    clock: runtime.clock,
    random: runtime.random,
    simulator,
    demoFile: settings.DEMO_FILE,
  })
  const { fetch } = createConsole({
    fleet,
    page: pageAssets(files, join(import.meta.dirname, 'console/assets')),
    desk,
    scenarios: folderScenarios(
      join(packageRoot(), 'simulator/scenarios/library'),
      join(dataDir, 'simulator', 'scenarios'),
    ),
    loginOf: (hubId) => (hubId === described[0]!.hubId ? readLogin(settings) : undefined),
    isAllowedHost,
    log,
    clock: runtime.clock,
    liveMs: settings.SIMULATOR_LIVE_MS,
  })
  const server = serve({ fetch, hostname, port, serverOptions }) as Server
  boundServer(server, settings.bounds, runtime)
  await orSetting(
    'SIMULATOR_PORT',
    () =>
      new Promise<void>((listening, failed) => {
        server.once('listening', listening)
        server.once('error', failed)
      }),
  )

  const progress = progressOn(process.stderr, runtime.clock)
  for (const [index, hardware] of described.entries()) {
    progress.show(`making hub ${hardware.hubId}, ${index + 1} of ${described.length}`)
    await fleet.add(hardware, index === 0 ? shelves : undefined)
  }

  async function mountSerial(hub: SimulatedHub): Promise<(() => Promise<void>)[]> {
    const mounted: (() => Promise<void>)[] = []
    for (const wire of hub.wires) {
      const address = tcpAddress(wire.port)
      const link = portPath(dataDir, wire.port)
      const mount = address
        ? await orSetting(`port of controller ${wire.controllerId}`, () => mountTcp(wire, address, log))
        : await orSetting(`port of controller ${wire.controllerId}`, () => mountPty(wire, link, log))
      log.info({ controller: wire.controllerId, port: address ? wire.port : link }, 'serial line ready')
      mounted.push(() => mount.close())
    }
    return mounted
  }

  async function mountBoards({ controllers, hardware }: SimulatedHub): Promise<(() => Promise<void>)[]> {
    const mounted: (() => Promise<void>)[] = []
    for (const [id, address] of boardsOf(hardware.hubId)) {
      const server = await orSetting('BOARDS', () => serveBoard(controllers.get(id)!, { address, log }))
      log.info({ controller: id, socket: formatGpioAddress(server.address) }, 'the board awaits its firmware')
      mounted.push(() => server.close())
    }
    return mounted
  }

  async function mountGpio({ gpio, hardware: { hubId } }: SimulatedHub): Promise<() => Promise<void>> {
    const isFirst = hubId === described[0]!.hubId
    const standard = `unix:${join(dataDir, `gpio-${hubId}.sock`)}`
    const text = (isFirst && settings.GPIO_SOCKET) || standard
    const address = parseGpioAddress(text)
    if (!address) throw new SettingError(`GPIO_SOCKET: ${text}: must be unix:PATH or tcp:HOST:PORT`)
    const { clock } = runtime
    const server = await orSetting('GPIO_SOCKET', () =>
      startGpioSocketServer({ bank: gpio, address, clock, log }),
    )
    log.info({ hub: hubId, socket: formatGpioAddress(server.address) }, 'GPIO lines ready')
    return () => server.close()
  }

  progress.clear()
  const address = server.address()
  const bound = typeof address === 'object' && address ? address.port : port
  process.stdout.write(`simulator ready: http://${urlHost(hostname)}:${bound}\n`)

  const stop = stopper({
    clock: runtime.clock,
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
      clock: runtime.clock,
      input: process.stdin,
      output: process.stdout,
      onExit: () => stop('the REPL has ended'),
    })
}

/** Says which setting an address that cannot be had comes from. */
async function orSetting<T>(setting: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EADDRINUSE' ? `the address is in use (${message})` : message
    throw new SettingError(`${setting}: ${reason}`)
  }
}
