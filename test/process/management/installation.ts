import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { type SeedResult, demoPlaces, type DemoPlaces } from '../../../simulator/demo/places.ts'
import { prepareData, prepareManagement } from '../../../simulator/demo/first-start.ts'
import {
  cloudEnvironment,
  demoAddresses,
  managementEnvironment,
  programs,
  type DemoAddresses,
  type DemoProgram,
} from '../../../simulator/demo/programs.ts'
import { openSupervisorInterface, Supervisor } from '../../../simulator/demo/supervisor.ts'
import { seedCopies } from '../../support/demo-data.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'
import { freeDemoSettings } from '../../support/demo-settings.ts'
import { startProxy, type Proxy } from '../../../simulator/demo/proxy.ts'

const files: Record<DemoProgram, string> = {
  cloud: 'cloud/main',
  edge: 'edge/main',
  simulator: 'simulator/main',
  management: 'edge/management/main',
}

export interface Answer {
  status: number
  body: { status?: string; result?: Record<string, unknown> & { response_data?: Record<string, unknown> } }
}

/** The demo's programs as separate processes, with a line between hub and broker that can be cut. */
export interface Installation {
  seed: SeedResult
  places: DemoPlaces
  addresses: DemoAddresses
  sshPort: number
  proxy: Proxy
  supervisor: Supervisor<DemoProgram>
  pidOf(name: DemoProgram): number
  /** Calls a control as the owner. */
  control(method: 'GET' | 'POST', name: string, bin?: number): Promise<Answer>
  /** Whether the hub itself reports a bin as enabled; `undefined` if it does not answer. */
  enabledAtHub(bin: number): Promise<boolean | undefined>
  /** `npm run hubs`. */
  hubs(...args: string[]): Record<string, string>
  close(): Promise<void>
}

const TOKEN = 'a-token-of-this-test-alone'
const COMMON = { SIMULATOR_SPEED: '20', LOCAL_TOKEN: TOKEN, HEARTBEAT_MS: '2000', COMMAND_TIMEOUT_MS: '3000' }

export async function install(folder: string, runtime: Runtime): Promise<Installation> {
  const settings = await freeDemoSettings(folder)
  const places = demoPlaces(folder)
  const addresses = demoAddresses(settings, places)
  const environment = cloudEnvironment(settings, places, addresses)
  const seed = await prepareData({
    places,
    seed: { command: seedCopies(), environment },
    hardwareTemplate: join(packageRoot(), 'simulator/hardware/demo-hub.json'),
  })
  await prepareManagement({
    places,
    hubId: 1,
    port: settings.MANAGEMENT_PORT,
    hostKey: {
      command: [...commandOf(files.management), '--host-key'],
      environment: managementEnvironment(settings, places),
    },
    hubs: { command: [...commandOf('cloud/cli/main'), 'hubs'], environment },
  })
  const proxy = await startProxy({ target: settings.MQTT_PORT, clock: runtime.clock })
  const pids = new Map<DemoProgram, number>()
  const supervisor = new Supervisor<DemoProgram>({
    programs: programs({
      settings,
      places,
      addresses,
      hubId: 1,
      mqttPassword: seed.mqtt_password,
      hubMqttUrl: addresses.mqttUrl,
      sysfs: undefined,
    }).map((program) => ({
      ...program,
      command: commandOf(files[program.name]),
      environment: {
        ...program.environment,
        ...COMMON,
        ...(program.name === 'edge' && { MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` }),
      },
    })),
    runtime,
    onStarted: (name, pid) => pids.set(name, pid),
    onDied: () => {},
  })
  const outside = await openSupervisorInterface<DemoProgram>({
    supervisor,
    programs: { edge: async () => (await state()) !== undefined },
    socket: places.supervisorSocket,
    clock: runtime.clock,
  })

  /** State from the hub's own interface. */
  async function state(): Promise<
    { health: { bins: { bin_number: number; enabled: boolean }[] } } | undefined
  > {
    try {
      const headers = { Authorization: `Bearer ${TOKEN}` }
      const signal = AbortSignal.timeout(2000)
      const answer = await fetch(`${addresses.edgeUrl}/api/state`, { headers, signal })
      return answer.ok ? ((await answer.json()) as Awaited<ReturnType<typeof state>>) : undefined
    } catch {
      return undefined
    }
  }

  return {
    seed,
    places,
    addresses,
    sshPort: settings.MANAGEMENT_PORT,
    proxy,
    supervisor,
    pidOf: (name) => pids.get(name)!,
    async control(method, name, bin = 2) {
      const answer = await fetch(`${addresses.baseUrl}/api/v1/owners/controls/${name}?bin=${bin}&hub=1`, {
        method,
        // The service may close a kept-alive connection exactly when it is used again.
        headers: { 'X-API-Key': seed.owner.api_key, Connection: 'close' },
        signal: AbortSignal.timeout(60_000),
      })
      return { status: answer.status, body: (await answer.json()) as Answer['body'] }
    },
    enabledAtHub: async (bin) =>
      (await state())?.health.bins.find(({ bin_number }) => bin_number === bin)?.enabled,
    hubs(...args) {
      const [program, ...rest] = [...commandOf('cloud/cli/main'), 'hubs', ...args]
      const { stdout, stderr } = spawnSync(program, rest, {
        encoding: 'utf8',
        env: { ...process.env, ...environment },
      })
      if (stderr !== '') throw new Error(stderr)
      return JSON.parse(stdout) as Record<string, string>
    },
    async close() {
      outside.close()
      await supervisor.stop()
      await proxy.close()
    },
  }
}
