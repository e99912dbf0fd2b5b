import * as files from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { MANAGEMENT_USER } from '../../protocol/management/command.ts'
import type { Progress } from '../../protocol/model/progress.ts'
import { every, type Runtime } from '../../protocol/model/runtime.ts'
import { testCards } from '../../protocol/model/test-cards.ts'
import { sysfsAvailability } from '../mounts/gpio/mounted-command.ts'
import { packageRoot } from '../package-root.ts'
import { writeJson, type SeedResult, demoPlaces, type DemoPlaces, isHeld, lockFolder } from './places.ts'
import { dropData, prepareData, prepareManagement, unplug } from './first-start.ts'
import { formatLinesToTry, operatorLine } from './lines-to-try.ts'
import { openBenchInterface, openSupervisorInterface, Supervisor } from './supervisor.ts'
import { startProxy, type Proxy } from './proxy.ts'
import {
  answers,
  isPortFree,
  waitUntilReady,
  cloudEnvironment,
  demoAddresses,
  demoPrograms,
  managementEnvironment,
  programCommand,
  programs,
  type DemoAddresses,
  type DemoProgram,
  type ProgramsOptions,
} from './programs.ts'
import { demoPorts, standardDataDir, type DemoSettings } from './settings.ts'

const READY_TIMEOUT_MS = 120_000
const PROGRESS_EVERY_MS = 250
/** A program that ends this often before everything runs is broken. */
const MAX_FIRST_STARTS = 4
/** Maximum length of a Unix socket's path in bytes, on Linux. */
const MAX_SOCKET_PATH = 107

/** A start that failed for a reason that the person at the terminal can repair. */
export class DemoError extends Error {}

interface DemoOptions {
  settings: DemoSettings
  runtime: Runtime
  /** Writes for the person at the terminal. */
  print: (text: string) => void
  /** Shows what takes long. */
  progress: Progress
  /** Settings of the programs in addition to the environment of this process. */
  environment?: Readonly<Record<string, string>>
}

/** The demo starts when it is created. */
export class Demo {
  /** Resolves when everything runs and is printed. If that fails it ends everything and rejects. */
  readonly ready: Promise<void>
  readonly #options: DemoOptions
  readonly #places: DemoPlaces
  readonly #addresses: DemoAddresses
  /** Functions that close the opened resources; called in reverse order. */
  readonly #closings: (() => unknown)[] = []
  readonly #endProgress: () => void
  #stage = 'checking ports and folder'
  #isStopped = false
  #isUp = false
  /** The reason why the demo cannot start. */
  #failure: string | undefined

  constructor(options: DemoOptions) {
    const { settings, runtime, progress } = options
    this.#options = options
    this.#places = demoPlaces(settings.DATA_DIR)
    this.#addresses = demoAddresses(settings, this.#places)
    const { clock } = runtime
    const startedAt = clock.monotonic()
    const cancel = every(clock, PROGRESS_EVERY_MS, () => {
      const seconds = Math.round((clock.monotonic() - startedAt) / 1000)
      progress.show(`${this.#stage} … ${seconds} s`)
    })
    this.#endProgress = () => {
      cancel()
      progress.clear()
    }
    this.ready = this.#start().finally(this.#endProgress)
  }

  /** Ends every program. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#endProgress()
    while (this.#closings.length > 0) await this.#closings.pop()!()
  }

  async #start(): Promise<void> {
    const { settings, runtime } = this.#options
    const places = this.#places
    const sysfs = chooseGpio(settings, places, this.#print)
    // Before any advice to take other ports.
    if (await isHeld(places.lock)) throw runningAlready(places)
    await refuseUsedPorts(settings)
    // Before anything in the folder changes.
    this.#closings.push(await lockData(places))
    const seed = await this.#prepare()
    const hubId = seed.hubs[0]!.hub_id
    const file = demoFile(seed, this.#addresses)
    const line = await startProxy({ target: settings.MQTT_PORT, clock: runtime.clock })
    this.#closings.push(() => line.close())
    writeJson(places.hubConfig, { MQTT_URL: `mqtt://127.0.0.1:${line.port}` })
    const supervisor = this.#supervisor(file, {
      hubId,
      mqttPassword: seed.mqtt_password,
      hubConfig: places.hubConfig,
      apiKey: seed.owner.api_key,
      sysfs,
    })
    this.#closings.push(() => supervisor.stop())
    await this.#openInterfaces(supervisor, line)
    if (this.#isStopped) return this.stop()
    this.#stage = 'starting the programs, until the hub takes orders'
    supervisor.start()
    await this.#untilReady(hubId)
    if (this.#isStopped) return
    this.#isUp = true
    writeJson(places.demoFile, file)
    const addresses = this.#addresses
    this.#print(greeting({ settings, places, addresses, hubId, sysfs: sysfs !== undefined }))
  }

  readonly #print = (text: string): void => {
    this.#options.progress.clear()
    this.#options.print(text)
  }

  /** Fills the data folder at the first start. */
  async #prepare(): Promise<SeedResult> {
    const { settings } = this.#options
    const places = this.#places
    const environment = cloudEnvironment(settings, places, this.#addresses)
    const hardwareTemplate = join(packageRoot(), 'simulator/hardware/demo-hub.json')
    if (settings.fresh) dropData(places)
    if (!files.existsSync(places.seedFile)) this.#print('First start: making the data of the demo…')
    this.#stage = 'filling the database: hubs, products, two years of orders'
    const seed = await prepareData({
      places,
      seed: {
        command: programCommand('cloud/demo/seed'),
        environment: { ...environment, HARDWARE: hardwareTemplate },
      },
      hardwareTemplate,
    })
    this.#stage = 'introducing hub and cloud to each other'
    await prepareManagement({
      places,
      hubId: seed.hubs[0]!.hub_id,
      port: settings.MANAGEMENT_PORT,
      hostKey: {
        command: [...programCommand('edge/management/main'), '--host-key'],
        environment: managementEnvironment(settings, places),
      },
      hubs: { command: [...programCommand('cloud/cli/main'), 'hubs'], environment },
    })
    return seed
  }

  #supervisor(
    file: DemoFile,
    parts: Pick<ProgramsOptions, 'hubId' | 'mqttPassword' | 'hubConfig' | 'apiKey' | 'sysfs'>,
  ): Supervisor<DemoProgram> {
    const { settings, runtime, environment = {} } = this.#options
    const places = this.#places
    return new Supervisor<DemoProgram>({
      programs: programs({ settings, places, addresses: this.#addresses, ...parts }),
      runtime,
      environment,
      onStarted: (name, pid) => {
        file.pids[name] = pid
        if (this.#isUp) writeJson(places.demoFile, file)
      },
      onDied: (name, how, starts) => {
        if (name === 'simulator') unplug(places.hardwareFile)
        if (this.#isUp)
          this.#print(`The ${name} ended (${how}) and is started again; see ${places.log(name)}`)
        else if (starts >= MAX_FIRST_STARTS)
          this.#failure ??= `the ${name} ends again and again (${how}):\n${tail(places.log(name))}`
      },
    })
  }

  /** The interfaces of the hub's management and of the scenarios. */
  async #openInterfaces(supervisor: Supervisor<DemoProgram>, line: Proxy): Promise<void> {
    const { clock } = this.#options.runtime
    const { supervisorSocket, benchSocket, database, copies } = this.#places
    const { baseUrl, edgeUrl } = this.#addresses
    const isReady = {
      cloud: () => answers(`${baseUrl}/`),
      edge: () => answers(`${edgeUrl}/health`),
    }
    const management = await openSupervisorInterface<DemoProgram>({
      supervisor,
      programs: { edge: isReady.edge },
      socket: supervisorSocket,
      clock,
    })
    this.#closings.push(() => management.close())
    const bench = await openBenchInterface({
      supervisor,
      isReady,
      line,
      database,
      copies,
      socket: benchSocket,
      clock,
    })
    this.#closings.push(() => bench.close())
  }

  /** Throws if the hub takes no orders in time. */
  async #untilReady(hubId: number): Promise<void> {
    const { settings, runtime } = this.#options
    const isReady = await waitUntilReady({
      clock: runtime.clock,
      baseUrl: this.#addresses.baseUrl,
      hubId,
      managementPort: settings.MANAGEMENT_PORT,
      timeoutMs: READY_TIMEOUT_MS,
      isGivenUp: () => this.#isStopped || this.#failure !== undefined,
    })
    if (isReady || this.#isStopped) return
    await this.stop()
    throw new DemoError(this.#failure ?? `hub ${hubId} does not take orders; see ${this.#places.logs}`)
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

/** Resolves with the function that releases the lock. */
async function lockData(places: DemoPlaces): Promise<() => Promise<void>> {
  makeFolder(files, places.dataDir)
  const release = await lockFolder(places.lock)
  if (!release) throw runningAlready(places)
  return () => Promise.resolve(release())
}

function runningAlready({ dataDir, demoFile }: DemoPlaces): DemoError {
  const address =
    files.existsSync(demoFile) && DemoAddress.parse(JSON.parse(files.readFileSync(demoFile, 'utf8'))).base_url
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

/** `data/demo.json`: the running demo's addresses, keys and process ids, for newcomers and tests. */
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

function greeting(options: {
  settings: DemoSettings
  places: DemoPlaces
  addresses: DemoAddresses
  hubId: number
  sysfs: boolean
}): string {
  const { settings, places, addresses, hubId } = options
  const gpio = options.sysfs ? `onoff on a simulated /sys/class/gpio, base ${settings.GPIO_BASE}` : 'a socket'
  return [
    'Larder is up.',
    '',
    `  console    ${addresses.baseUrl}/console`,
    `  shop       ${addresses.baseUrl}/shop/${hubId}`,
    `  API        ${addresses.docsUrl}`,
    `  hub ${hubId}      ${addresses.edgeUrl}   token in ${places.journal}.token; GPIO by ${gpio}`,
    `  management ssh -p ${settings.MANAGEMENT_PORT} -i ${places.managementKey} ${MANAGEMENT_USER}@127.0.0.1 status`,
    `  simulator  ${addresses.simulatorUrl}`,
    `  broker     ${addresses.mqttUrl}`,
    `  operators  ${operatorLine(settings.DATA_DIR, standardDataDir)}`,
    `  keys, process ids and addresses: ${places.demoFile}; logs: ${places.logs}`,
    '',
    'Try, in another terminal and in this folder:',
    '',
    formatLinesToTry(settings.DATA_DIR, standardDataDir),
    '',
    `or on the page ${addresses.docsUrl}, where the keys are filled in. Its cards:`,
    '',
    ...Object.entries(testCards).map(([name, does]) => `  ${name.padEnd(31)} ${does.replaceAll('`', '')}`),
    '',
    'Ctrl-C ends all of it.',
    '',
  ].join('\n')
}

function tail(path: string): string {
  return files.existsSync(path) ? files.readFileSync(path, 'utf8').split('\n').slice(-15).join('\n') : ''
}
