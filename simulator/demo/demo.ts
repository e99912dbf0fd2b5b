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
import { writeJson, type SeedResult, demoPlaces, type DemoPlaces } from './places.ts'
import { isHeld, lockFolder } from './folder-lock.ts'
import { dropData, prepareData, prepareManagement, unplug } from './first-start.ts'
import { formatLinesToTry, operatorLine } from './lines-to-try.ts'
import { openBenchInterface } from './bench-interface.ts'
import { startProxy } from './proxy.ts'
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
import { demoPorts, standardDataDir, type DemoSettings } from './settings.ts'
import { Supervisor } from './supervisor.ts'
import { openSupervisorInterface } from './supervisor-interface.ts'

export interface Demo {
  /** Resolves when everything is up and said; rejects, with everything ended, where that cannot be. */
  ready: Promise<void>
  /** Ends every program. */
  stop(): Promise<void>
}

const READY_TIMEOUT_MS = 120_000
const PROGRESS_EVERY_MS = 250
/** A program that died so often before everything was up is broken, not unlucky. */
const MAX_FIRST_STARTS = 4
/** Of a Unix socket's path, in bytes, on Linux. */
const MAX_SOCKET_PATH = 107

/** A start that failed for a reason that the person at the keyboard can do something about. */
export class DemoError extends Error {}

/**
 * Starts the demo. `print` writes for the person at the keyboard, who sees by `progress` what takes long. `environment`: settings
 * of the programs besides those of this process.
 */
export function startDemo(
  settings: DemoSettings,
  runtime: Runtime,
  print: (text: string) => void,
  progress: Progress,
  environment: Readonly<Record<string, string>> = {},
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
    if (!files.existsSync(places.seedFile)) say('First start: making the data of the demo…')
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
    const line = await startProxy({ target: settings.MQTT_PORT, clock: runtime.clock })
    const unlock = stop
    stop = async () => {
      await line.close()
      await unlock()
    }
    const hubMqttUrl = `mqtt://127.0.0.1:${line.port}`
    let isUp = false
    let failure: string | undefined
    const supervisor = new Supervisor<DemoProgram>({
      programs: programs({
        settings,
        places,
        addresses,
        hubId,
        mqttPassword: seed.mqtt_password,
        hubMqttUrl,
        apiKey: seed.owner.api_key,
        sysfs,
      }),
      runtime,
      environment,
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
    const isReady = {
      cloud: async () => (await request('GET', `${addresses.baseUrl}/`)) !== undefined,
      edge: async () => (await request('GET', `${addresses.edgeUrl}/health`)) !== undefined,
    }
    const { clock } = runtime
    const outside = [
      await openSupervisorInterface<DemoProgram>({
        supervisor,
        programs: { edge: isReady.edge },
        socket: places.supervisorSocket,
        clock,
      }),
      await openBenchInterface({
        supervisor,
        isReady,
        line,
        database: places.database,
        copies: places.copies,
        socket: places.benchSocket,
        clock,
      }),
    ]
    const cutLine = stop
    stop = async () => {
      for (const one of outside) one.close()
      await supervisor.stop()
      await cutLine()
    }
    if (isStopped) return stop()
    stage = 'starting the programs, until the hub takes orders'
    supervisor.start()

    const isUpInTime = await waitUntilReady({
      clock: runtime.clock,
      baseUrl: addresses.baseUrl,
      hubId,
      managementPort: settings.MANAGEMENT_PORT,
      timeoutMs: READY_TIMEOUT_MS,
      isGivenUp: () => isStopped || failure !== undefined,
    })
    if (isStopped) return
    if (!isUpInTime) {
      await stop()
      throw new DemoError(failure ?? `hub ${hubId} does not take orders; see ${places.logs}`)
    }
    isUp = true
    writeJson(places.demoFile, file)
    say(greeting({ settings, places, addresses, hubId, sysfs: sysfs !== undefined }))
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
