import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { MANAGEMENT_USER } from '../../protocol/management/command.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Progress } from '../../protocol/model/progress.ts'
import { every, type Runtime } from '../../protocol/model/runtime.ts'
import { sysfsAvailability } from '../mounts/gpio/mounted-command.ts'
import { writeJson, type SeedResult, demoPlaces, type DemoPlaces } from './places.ts'
import { isHeld, lockFolder } from './folder-lock.ts'
import { dropData, prepareData, prepareManagement, unplug } from './first-start.ts'
import { formatLinesToTry, linesToTry } from './lines-to-try.ts'
import { isPortFree, request, waitUntilReady } from './readiness.ts'
import {
  cloudEnvironment,
  demoAddresses,
  demoPrograms,
  managementEnvironment,
  programCommand,
  programs,
  type DemoAddresses,
  type DemoProgram,
} from './programs.ts'
import { demoPorts, type DemoSettings } from './settings.ts'
import { createSupervisor } from './supervisor.ts'
import { openSupervisorInterface } from './supervisor-interface.ts'

export interface Demo {
  /** Resolves when everything is up and said; rejects, with everything ended, where that cannot be. */
  ready: Promise<void>
  /** Ends every program. */
  stop(): Promise<void>
}

const READY_TIMEOUT_MS = 60_000
const PROGRESS_EVERY_MS = 250
/** A program that died so often before everything was up is broken, not unlucky. */
const MAX_FIRST_STARTS = 4
/** Of a Unix socket's path, in bytes, on Linux. */
const MAX_SOCKET_PATH = 107

/** A start that failed for a reason that the person at the keyboard can do something about. */
export class DemoError extends Error {}

/** Starts the demo. `print` writes for the person at the keyboard, who sees by `progress` what takes long. */
export function startDemo(
  settings: DemoSettings,
  runtime: Runtime,
  print: (text: string) => void,
  progress: Progress,
): Demo {
  let stop = (): Promise<void> => Promise.resolve()
  let isStopped = false
  let stage = 'looking around'
  const startedAt = runtime.clock.monotonic()
  const stopShowing = every(runtime.clock, PROGRESS_EVERY_MS, () => {
    const seconds = Math.round((runtime.clock.monotonic() - startedAt) / 1000)
    progress.show(`${stage} … ${seconds} s`)
  })
  const ready = start().finally(endProgress)
  return {
    ready,
    async stop() {
      isStopped = true
      endProgress()
      await stop()
    },
  }

  function endProgress(): void {
    stopShowing()
    progress.clear()
  }

  function say(text: string): void {
    progress.clear()
    print(text)
  }

  async function start(): Promise<void> {
    const places = demoPlaces(settings.DATA_DIR)
    const addresses = demoAddresses(settings, places)
    const sysfs = chooseGpio(settings, places, say)
    // Before anybody is told to take other ports.
    if (await isHeld(places.lock)) throw runningAlready(places)
    await refuseUsedPorts(settings)
    // Before anything in the folder is touched.
    stop = await lockData(places)
    if (settings.fresh) dropData(places)
    if (!existsSync(places.seedFile)) say('First start: making the data of the demo…')
    stage = 'filling the database: hubs, products, two years of orders'
    const hardwareTemplate = join(packageRoot(), 'simulator/hardware/demo-hub.json')
    const seed = await prepareData({
      places,
      seed: {
        command: programCommand('cloud/demo/seed'),
        environment: { ...cloudEnvironment(settings, places, addresses), HARDWARE: hardwareTemplate },
      },
      hardwareTemplate,
    })
    const hubId = seed.hubs[0]!.hub_id
    stage = 'making hub and cloud known to one another'
    await prepareManagement({
      places,
      hubId,
      port: settings.MANAGEMENT_PORT,
      hostKey: {
        command: [...programCommand('edge/management/main'), '--host-key'],
        environment: managementEnvironment(settings, places),
      },
      hubs: {
        command: [...programCommand('cloud/cli/main'), 'hubs'],
        environment: cloudEnvironment(settings, places, addresses),
      },
    })

    const file = demoFile(seed, addresses)
    let isUp = false
    let failure: string | undefined
    const supervisor = createSupervisor<DemoProgram>({
      programs: programs({ settings, places, addresses, hubId, mqttPassword: seed.mqtt_password, sysfs }),
      runtime,
      onStarted(name, pid) {
        file.pids[name] = pid
        if (isUp) writeJson(places.demoFile, file)
      },
      onDied(name, how, starts) {
        if (name === 'simulator') unplug(places.hardwareFile)
        if (isUp) say(`The ${name} ended (${how}) and is started again; see ${places.log(name)}`)
        else if (starts >= MAX_FIRST_STARTS)
          failure ??= `the ${name} ends again and again (${how}):\n${tail(places.log(name))}`
      },
    })
    const outside = await openSupervisorInterface<DemoProgram>({
      supervisor,
      programs: {
        edge: async () => (await request('GET', `${addresses.edgeUrl}/health`)) !== undefined,
      },
      socket: places.supervisorSocket,
      clock: runtime.clock,
    })
    const unlock = stop
    stop = async () => {
      outside.close()
      await supervisor.stop()
      await unlock()
    }
    if (isStopped) return stop()
    stage = 'starting the programs, until the hub takes orders'
    supervisor.start()

    const isReady = await waitUntilReady({
      clock: runtime.clock,
      baseUrl: addresses.baseUrl,
      hubId,
      managementPort: settings.MANAGEMENT_PORT,
      timeoutMs: READY_TIMEOUT_MS,
      isGivenUp: () => isStopped || failure !== undefined,
    })
    if (isStopped) return
    if (!isReady) {
      await stop()
      throw new DemoError(failure ?? `hub ${hubId} does not take orders; see ${places.logs}`)
    }
    isUp = true
    writeJson(places.demoFile, file)
    say(await greeting({ settings, places, addresses, hubId, runtime, sysfs: sysfs !== undefined }))
  }
}

/** Decides between onoff on a mounted tree and the socket. */
function chooseGpio(
  { GPIO }: DemoSettings,
  places: DemoPlaces,
  say: (text: string) => void,
): { prefix: readonly string[] } | undefined {
  if (Buffer.byteLength(places.gpioSocket) > MAX_SOCKET_PATH)
    throw new DemoError(`DATA_DIR is too long a path for a socket: ${places.gpioSocket}`)
  if (GPIO === 'socket') return undefined
  const found = sysfsAvailability()
  if (found.available) return found
  if (GPIO === 'sysfs') throw new DemoError(`GPIO=sysfs cannot be had here: ${found.reason}`)
  say(`No simulated /sys/class/gpio here (${found.reason}): the hub's GPIO lines come over a socket.`)
  return undefined
}

/** Resolves with the release. */
async function lockData(places: DemoPlaces): Promise<() => Promise<void>> {
  mkdirSync(places.dataDir, { recursive: true })
  const release = await lockFolder(places.lock)
  if (!release) throw runningAlready(places)
  return () => Promise.resolve(release())
}

function runningAlready({ dataDir, demoFile }: DemoPlaces): DemoError {
  const address =
    existsSync(demoFile) && DemoAddress.parse(JSON.parse(readFileSync(demoFile, 'utf8'))).base_url
  return new DemoError(
    `a demo runs in ${dataDir} already${address ? ` at ${address}` : ''}; another one needs a folder and ports of its own: DATA_DIR, ${demoPorts.join(', ')}`,
  )
}

const DemoAddress = z.object({ base_url: z.string() })

async function refuseUsedPorts(settings: DemoSettings): Promise<void> {
  const byPort = new Map<number, string>()
  for (const name of demoPorts) {
    const port = settings[name]
    const other = byPort.get(port)
    if (other !== undefined) throw new DemoError(`${other} and ${name} are both ${port}`)
    byPort.set(port, name)
    if (!(await isPortFree(port)))
      throw new DemoError(
        `port ${port} is in use; set ${name} to another one: ${name}=${port + 1000} npm start`,
      )
  }
}

/** `data/demo.json`: what a newcomer and tests read of a running demo. */
function demoFile(seed: SeedResult, addresses: DemoAddresses) {
  return {
    base_url: addresses.baseUrl,
    docs_url: addresses.docsUrl,
    owner: seed.owner,
    other_owner: seed.other_owner,
    diag: seed.diag,
    hubs: seed.hubs,
    simulator_url: addresses.simulatorUrl,
    edge_url: addresses.edgeUrl,
    mqtt_url: addresses.mqttUrl,
    database_url: addresses.databaseUrl,
    pids: Object.fromEntries(demoPrograms.map((name) => [name, null])) as Record<DemoProgram, number | null>,
  }
}

export type DemoFile = ReturnType<typeof demoFile>

const Products = z.array(z.object({ id: z.int(), quantity: z.int() }))

async function greeting(options: {
  settings: DemoSettings
  places: DemoPlaces
  addresses: DemoAddresses
  hubId: number
  runtime: Runtime
  sysfs: boolean
}): Promise<string> {
  const { settings, places, addresses, hubId } = options
  const products = Products.parse(
    await request('GET', `${addresses.baseUrl}/hubs/${hubId}/products?size=100`),
  )
  const lines = linesToTry({
    baseUrl: addresses.baseUrl,
    simulatorUrl: addresses.simulatorUrl,
    hubId,
    productId: products.find(({ quantity }) => quantity >= 2)?.id ?? products[0]!.id,
    subject: `guest-${randomHex(options.runtime.random, 4)}`,
  })
  const gpio = options.sysfs ? `onoff on a simulated /sys/class/gpio, base ${settings.GPIO_BASE}` : 'a socket'
  return [
    'Larder is up.',
    '',
    `  API        ${addresses.docsUrl}`,
    `  hub ${hubId}      ${addresses.edgeUrl}   token in ${places.journal}.token; GPIO by ${gpio}`,
    `  management ssh -p ${settings.MANAGEMENT_PORT} -i ${places.managementKey} ${MANAGEMENT_USER}@127.0.0.1 status`,
    `  simulator  ${addresses.simulatorUrl}`,
    `  broker     ${addresses.mqttUrl}`,
    `  keys, process ids and addresses: ${places.demoFile}; logs: ${places.logs}`,
    '',
    'Try, in another terminal:',
    '',
    formatLinesToTry(lines),
    'Ctrl-C ends all of it.',
    '',
  ].join('\n')
}

function tail(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(-15).join('\n') : ''
}

/** The repository's folder, above this file or what it was compiled to: only there is tsconfig.json. */
function packageRoot(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'tsconfig.json'))) folder = join(folder, '..')
  return folder
}
