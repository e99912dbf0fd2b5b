import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { serve } from '@hono/node-server'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { boundServer, CHECK_CONNECTIONS_MS } from '../protocol/model/bound-server.ts'
import { formatGpioAddress, parseGpioAddress } from '../protocol/gpio/socket.ts'
import { hostCheck } from '../protocol/model/allowed-hosts.ts'
import type { HardwareDescription } from '../protocol/model/hardware.ts'
import { helpText, readSettings } from '../protocol/model/program-settings.ts'
import { progressOn } from '../protocol/model/progress.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { createConsole } from './console/http.ts'
import { complaintOf, playScenario } from './console/scenario.ts'
import { startRepl } from './console/repl.ts'
import { seededRandom } from './faults/faults.ts'
import { startGpioSocketServer } from './mounts/gpio/socket-server.ts'
import { mountPty } from './mounts/pty.ts'
import { mountTcp, tcpAddress } from './mounts/tcp.ts'
import { scaledTiming } from './physics/motion.ts'
import {
  exposed,
  portPath,
  readHardware,
  readScenario,
  readShelves,
  SettingError,
  simulatorSettings,
  type SimulatorSettings,
} from './settings.ts'
import { createSimulatedHub, type SimulatedHub } from './simulated-hub.ts'
import { folderStorage } from './storage/append-log.ts'

const usage =
  'npm run simulator -- [--config FILE] [--help]\n\nThe hardware of one or more hubs, in software.'

await main()

async function main(): Promise<void> {
  try {
    const { config, help } = readArguments()
    if (help) process.stdout.write(helpText(usage, simulatorSettings))
    else await run(settings(config))
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}

function readArguments(): { config?: string | undefined; help?: boolean | undefined } {
  try {
    return parseArgs({ options: { config: { type: 'string' }, help: { type: 'boolean' } } }).values
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${usage}`)
  }
}

function settings(config: string | undefined): SimulatorSettings {
  let file: { path: string; text: string } | undefined
  if (config !== undefined) {
    try {
      file = { path: config, text: readFileSync(config, 'utf8') }
    } catch (error) {
      throw new SettingError(`--config: ${(error as Error).message}`)
    }
  }
  const result = readSettings(simulatorSettings, process.env, file)
  const problems = result.ok ? exposed(result.settings) : result.problems
  if (result.ok && problems.length === 0) return result.settings
  throw new SettingError(problems.join('\n'))
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
  const scenario = readScenario(settings)
  const hubs = new Map<number, SimulatedHub>()
  const closings: (() => Promise<void>)[] = []

  // First of all: whoever has the port has the data folder too, and nothing of it is touched before.
  const { SIMULATOR_HOST: hostname, SIMULATOR_PORT: port, SIMULATOR_ALLOWED_HOSTS: names } = settings
  const isAllowedHost = hostCheck([hostname, ...(names?.split(',') ?? [])])
  const { fetch } = createConsole({ hubs, isAllowedHost, log })
  const serverOptions = { connectionsCheckingInterval: CHECK_CONNECTIONS_MS }
  const server = serve({ fetch, hostname, port, serverOptions }) as Server
  boundServer(server, settings.bounds, runtime.clock)
  await orSetting(
    'SIMULATOR_PORT',
    () =>
      new Promise<void>((listening, failed) => {
        server.once('listening', listening)
        server.once('error', failed)
      }),
  )

  const described = readHardware(settings)
  const progress = progressOn(process.stderr, runtime.clock)
  for (const [index, hardware] of described.entries()) {
    progress.show(`making hub ${hardware.hubId}, ${index + 1} of ${described.length}`)
    const hub = createSimulatedHub({
      hardware,
      runtime,
      storage: folderStorage(join(dataDir, 'simulator', `hub-${hardware.hubId}`)),
      log,
      timing: scaledTiming(settings.SIMULATOR_SPEED),
      dropWindowMs: 1000 / settings.SIMULATOR_SPEED,
      // Only of what happens by chance: boot and memory ids must differ whatever the seed.
      chance: settings.SIMULATOR_SEED === undefined ? undefined : seededRandom(settings.SIMULATOR_SEED),
      loaded: index === 0 ? shelves : undefined,
    })
    hubs.set(hardware.hubId, hub)
    closings.push(await mountGpio(hub, hardware, index === 0), ...(await mountSerial(hub)))
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

  async function mountGpio(hub: SimulatedHub, { hubId }: HardwareDescription, isFirst: boolean) {
    const standard = `unix:${join(dataDir, `gpio-${hubId}.sock`)}`
    const text = (isFirst && settings.GPIO_SOCKET) || standard
    const address = parseGpioAddress(text)
    if (!address) throw new SettingError(`GPIO_SOCKET: ${text}: must be unix:PATH or tcp:HOST:PORT`)
    const { clock } = runtime
    const server = await orSetting('GPIO_SOCKET', () =>
      startGpioSocketServer({ bank: hub.gpio, address, clock, log }),
    )
    log.info({ hub: hubId, socket: formatGpioAddress(server.address) }, 'GPIO lines ready')
    return () => server.close()
  }

  progress.clear()
  const address = server.address()
  const bound = typeof address === 'object' && address ? address.port : port
  process.stdout.write(`simulator ready: http://${hostname}:${bound}\n`)

  const [first] = hubs.values()
  if (first)
    playScenario(scenario, first, runtime.clock, (event, reason) => {
      // In a terminal people read, who have typed nothing wrong.
      if (inTerminal) process.stdout.write(`\n${complaintOf(event, reason)}\n`)
      else log.warn({ event, reason }, 'the scenario asks for what is not possible')
    })

  let ending = false
  function end(): void {
    if (ending) return
    ending = true
    for (const hub of hubs.values()) hub.stop()
    server.close()
    void Promise.all(closings.map((close) => close())).then(() => process.exit(0))
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  if (inTerminal) startRepl(hubs, { input: process.stdin, output: process.stdout, onExit: end })
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
