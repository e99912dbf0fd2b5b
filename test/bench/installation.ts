import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { type SeedResult, demoPlaces, type DemoPlaces } from '../../simulator/demo/places.ts'
import { prepareData } from '../../simulator/demo/first-start.ts'
import {
  cloudEnvironment,
  demoAddresses,
  programCommand,
  programs,
  type DemoAddresses,
  type DemoProgram,
} from '../../simulator/demo/programs.ts'
import { Supervisor } from '../../simulator/demo/supervisor.ts'
import { freeDemoSettings } from '../support/demo-settings.ts'

export interface InstallationOptions {
  /** An empty folder. */
  folder: string
  runtime: Runtime
  /** Hardware of hub 1, with ports relative to its folder. */
  hardware: z.input<typeof HardwareDescription>
  /** The programs to run, each with its settings beyond those of the demo. */
  run: Partial<Record<DemoProgram, Record<string, string>>>
  /** Another command of the hub's service instead of the default one. */
  hubCommand?: readonly string[]
}

/** The real programs as the demo configures them, each a separate process. */
export interface Installation {
  seed: SeedResult
  hubId: number
  places: DemoPlaces
  addresses: DemoAddresses
  pidOf(name: DemoProgram): number
  start(): void
  /** Kills a program like a power cut; it stays down until `resume`. */
  halt(name: DemoProgram): Promise<void>
  resume(name: DemoProgram): void
  /** Throws if a program has died. */
  check(): void
  stop(): Promise<void>
}

/** Adds the processor profile, if it is requested. */
function profiled([node, ...args]: readonly string[]): string[] {
  const folder = process.env['BENCH_PROFILE']
  const flags = folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : []
  return [node!, ...flags, ...args]
}

/** Creates the data; no program runs before `start`. */
export async function install({
  folder,
  runtime,
  hardware,
  run,
  hubCommand,
}: InstallationOptions): Promise<Installation> {
  const settings = await freeDemoSettings(folder)
  const places = demoPlaces(folder)
  const addresses = demoAddresses(settings, places)
  mkdirSync(folder, { recursive: true })
  const hardwareTemplate = join(folder, 'hardware.json')
  writeFileSync(hardwareTemplate, JSON.stringify(hardware))
  const seed = await prepareData({
    places,
    seed: {
      command: programCommand('cloud/demo/seed'),
      environment: cloudEnvironment(settings, places, addresses),
    },
    hardwareTemplate,
  })
  const hubId = seed.hubs[0]!.hub_id
  const pids = new Map<DemoProgram, number>()
  let death: string | undefined
  const supervisor = new Supervisor<DemoProgram>({
    programs: programs({
      settings,
      places,
      addresses,
      hubId,
      mqttPassword: seed.mqtt_password,
      hubMqttUrl: addresses.mqttUrl,
      sysfs: undefined,
    }).flatMap((program) => {
      const told = run[program.name]
      if (!told) return []
      const command = profiled((program.name === 'edge' && hubCommand) || program.command)
      return [{ ...program, command, environment: { ...program.environment, ...told } }]
    }),
    runtime,
    onStarted: (name, pid) => pids.set(name, pid),
    onDied: (name, how) => (death ??= `the ${name} ended: ${how}; see ${places.log(name)}`),
  })
  return {
    seed,
    hubId,
    places,
    addresses,
    pidOf: (name) => pids.get(name)!,
    start: () => supervisor.start(),
    async halt(name) {
      await supervisor.halt(name, 0)
    },
    resume: (name) => supervisor.resume(name),
    check() {
      if (death !== undefined) throw new Error(death)
    },
    stop: () => supervisor.stop(),
  }
}
