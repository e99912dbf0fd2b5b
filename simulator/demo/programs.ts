import { join } from 'node:path'
import type { DemoPlaces } from './places.ts'
import type { DemoSettings } from './settings.ts'
import type { Program } from './supervisor.ts'
import { createServer } from 'node:net'
import { type Clock, sleep } from '../../protocol/model/runtime.ts'
import { jsonInterface } from '../interface/client.ts'
import { guestWithCart } from './guest.ts'

export const demoPrograms = ['cloud', 'edge', 'simulator', 'management'] as const
export type DemoProgram = (typeof demoPrograms)[number]

export function demoAddresses(settings: DemoSettings, places: DemoPlaces) {
  const local = (port: number) => `http://127.0.0.1:${port}`
  return {
    baseUrl: local(settings.PORT),
    docsUrl: `${local(settings.PORT)}/docs`,
    edgeUrl: local(settings.EDGE_PORT),
    simulatorUrl: local(settings.SIMULATOR_PORT),
    mqttUrl: `mqtt://127.0.0.1:${settings.MQTT_PORT}`,
    databaseUrl: `sqlite:${places.database}`,
  }
}

export type DemoAddresses = ReturnType<typeof demoAddresses>

/**
 * How to run a compiled program of this package: it stands beside this one, whatever either is compiled to. `flags` are
 * Node's own.
 */
export function programCommand(path: string, flags: readonly string[] = []): string[] {
  const extension = import.meta.filename.endsWith('.ts') ? '.ts' : '.js'
  const file = join(import.meta.dirname, '../..', `${path}${extension}`)
  return [process.execPath, ...process.execArgv, ...flags, file]
}

/**
 * The flags of `npm run edge`. New objects get 2 MB instead of up to 32, because a hub has few messages. V8's compilers
 * are off: the optimizing one takes 10 MB, the baseline one 2 MB, and a hub's code is never hot. Memory has precedence over
 * speed.
 */
export const edgeFlags = [
  '--max-semi-space-size=1',
  '--no-turbofan',
  '--no-sparkplug',
  '--optimize-for-size',
] as const

/**
 * The environment that the cloud and the seed program share. An empty variable counts as absent, so settings of other
 * installations in the demo's environment have no effect.
 */
export const cloudEnvironment = (settings: DemoSettings, places: DemoPlaces, addresses: DemoAddresses) => ({
  NODE_ENV: 'development',
  HOST: '127.0.0.1',
  PORT: String(settings.PORT),
  PUBLIC_URL: '',
  DATA_DIR: places.cloud,
  DATABASE_URL: addresses.databaseUrl,
  MQTT_PORT: String(settings.MQTT_PORT),
  MQTT_URL: '',
  MEDIA_URL: '',
  MEDIA_SECRET: '',
  STORE_SECRET: '',
  PAYMENTS_URL: 'sandbox:',
  IDENTITY_ISSUER: '',
  MANAGEMENT_KEY: places.managementKey,
})

/** The environment of the hub's management service. */
export const managementEnvironment = (settings: DemoSettings, places: DemoPlaces) => ({
  HOST: '127.0.0.1',
  PORT: String(settings.MANAGEMENT_PORT),
  HARDWARE: places.hardwareFile,
  STORE: places.journal,
  AUTHORIZED_KEYS: places.authorizedKeys,
  HOST_KEY: places.hostKey,
  SERVICE: `supervisor:${places.supervisorSocket}#edge`,
})

export interface ProgramsOptions {
  settings: DemoSettings
  places: DemoPlaces
  addresses: DemoAddresses
  hubId: number
  mqttPassword: string
  /** The owner's, which the documentation has filled in. */
  apiKey?: string
  /** The hub's line to the broker, if `hubConfig` does not name it. Settings of the cloud precede only that file. */
  hubMqttUrl?: string
  hubConfig?: string
  /** What to run `sysfs-main` with; `undefined` where the hub uses the GPIO socket. */
  sysfs: { prefix: readonly string[] } | undefined
}

/** The programs, as the demo configures them. */
export function programs(options: ProgramsOptions): Program<DemoProgram>[] {
  const { settings, places, addresses, sysfs } = options
  const gpioSocket = `unix:${places.gpioSocket}`
  const config = options.hubConfig === undefined ? [] : ['--config', options.hubConfig]
  const edge = [...programCommand('edge/main', edgeFlags), ...config]
  const chip = ['--socket', gpioSocket, '--hardware', places.hardwareFile]
  const mount = [...programCommand('simulator/mounts/gpio/sysfs-main'), ...chip]
  const mounted = sysfs && [...sysfs.prefix, ...mount, '--base', String(settings.GPIO_BASE), '--', ...edge]
  return [
    {
      name: 'cloud',
      command: programCommand('cloud/main'),
      environment: { ...cloudEnvironment(settings, places, addresses), DOCS_API_KEY: options.apiKey ?? '' },
      logFile: places.log('cloud'),
    },
    {
      name: 'simulator',
      command: programCommand('simulator/main'),
      environment: {
        SIMULATOR_HOST: '127.0.0.1',
        SIMULATOR_PORT: String(settings.SIMULATOR_PORT),
        DATA_DIR: places.dataDir,
        HARDWARE_FILES: places.hardwareFile,
        SHELVES_FILE: places.shelvesFile,
        GPIO_SOCKET: gpioSocket,
        DEMO_FILE: places.demoFile,
        HUB_URL: addresses.edgeUrl,
        HUB_TOKEN_FILE: `${places.journal}.token`,
      },
      logFile: places.log('simulator'),
    },
    {
      name: 'edge',
      command: mounted ?? edge,
      environment: {
        HOST: '127.0.0.1',
        // The cloud listens on the demo's METRICS_PORT.
        METRICS_PORT: '',
        HARDWARE: places.hardwareFile,
        STORE: places.journal,
        PORT: String(settings.EDGE_PORT),
        MQTT_URL: options.hubMqttUrl ?? '',
        MQTT_PASSWORD: options.mqttPassword,
        GPIO: sysfs ? 'onoff' : gpioSocket,
      },
      logFile: places.log('edge'),
      reportsPid: sysfs !== undefined,
    },
    {
      name: 'management',
      command: programCommand('edge/management/main', edgeFlags),
      environment: managementEnvironment(settings, places),
      logFile: places.log('management'),
    },
  ]
}

interface ReadinessOptions {
  clock: Clock
  baseUrl: string
  hubId: number
  /** Port of the hub's management service, if it runs. */
  managementPort?: number
  timeoutMs: number
  /** Called between attempts: true ends the wait. */
  isGivenUp(): boolean
}

/**
 * Waits until a customer could order: the cloud answers, the hub is online and takes orders, and its management service
 * listens. Opens a cart and deletes it again, because no smaller check proves that. Returns false after `timeoutMs`.
 */
export async function waitUntilReady(options: ReadinessOptions): Promise<boolean> {
  const { clock } = options
  const end = clock.monotonic() + options.timeoutMs
  while (clock.monotonic() < end && !options.isGivenUp()) {
    if ((await canOpenCart(options)) && (await listens(options.managementPort))) return true
    await sleep(clock, 200)
  }
  return false
}

const listens = async (port: number | undefined): Promise<boolean> =>
  port === undefined || !(await isPortFree(port))

async function canOpenCart({ baseUrl, hubId }: ReadinessOptions): Promise<boolean> {
  try {
    const { client, userId, orderId } = await guestWithCart(baseUrl, {
      subject: 'demo-launcher',
      hubId,
      tries: 1,
    })
    await client.call('DELETE /users/{user_id}/orders/{order_id}', {
      params: { user_id: userId, order_id: orderId },
    })
    return true
  } catch {
    return false
  }
}

/** Whether a program answers a request for this address with success. */
export const answers = (url: string): Promise<boolean> =>
  jsonInterface({ url, name: 'the program' })
    .ask('GET', '')
    .then(
      () => true,
      () => false,
    )

/** Whether the port is free on this machine's loopback address. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
