import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { type DemoPlaces, SeedResult, writeJson } from './places.ts'

/** Drops what earlier starts left; nothing else in the data folder is touched. */
export function dropData(places: DemoPlaces): void {
  for (const path of [
    places.seedFile,
    places.demoFile,
    places.cloud,
    places.hub,
    places.simulator,
    places.logs,
  ])
    rmSync(path, { recursive: true, force: true })
}

/**
 * Makes the demo's data on the first start, and reads on later ones what the first made. A first start that was cut off
 * is begun again from nothing: `seed.json` is written last.
 */
export function prepareData(options: {
  places: DemoPlaces
  /** The command that fills the cloud's database and prints a `SeedResult`. */
  seed: { command: readonly string[]; environment: Readonly<Record<string, string>> }
  /** The demo hub's hardware, as it stands in the repository: its serial ports are relative. */
  hardwareTemplate: string
}): SeedResult {
  const { places, seed } = options
  if (!existsSync(places.seedFile)) dropData(places)
  for (const folder of [places.logs, places.cloud, places.hub, places.simulator])
    mkdirSync(folder, { recursive: true })
  if (existsSync(places.seedFile)) return SeedResult.parse(JSON.parse(readFileSync(places.seedFile, 'utf8')))

  const { status, stdout, stderr, error } = spawnSync(seed.command[0]!, seed.command.slice(1), {
    encoding: 'utf8',
    env: { ...process.env, ...seed.environment },
  })
  if (status !== 0) throw new Error(`the demo's data could not be made: ${error?.message ?? stderr}`)
  const result = SeedResult.parse(JSON.parse(stdout))
  writeJson(places.shelvesFile, result.shelves)
  writeJson(places.hardwareFile, hardwareAt(options.hardwareTemplate, places.hub))
  writeJson(places.seedFile, result)
  return result
}

/** The hardware with its serial ports as links in `folder`, where the simulator makes them and the hub opens them. */
function hardwareAt(template: string, folder: string): HardwareDescription {
  const hardware = HardwareDescription.parse(JSON.parse(readFileSync(template, 'utf8')))
  return {
    ...hardware,
    controllers: hardware.controllers.map((controller) => ({
      ...controller,
      port: join(folder, controller.port),
    })),
  }
}

interface Tool {
  command: readonly string[]
  environment: Readonly<Record<string, string>>
}

const HostKey = z.object({ host_key: z.string() })
const Registered = z.object({ cloud_key: z.string() })
/** What the cloud was told. */
const Known = z.object({ port: z.int(), host_key: z.string() })

/**
 * Has hub and cloud know one another, as an operator would with the same two commands: at the first start both make their
 * keys, the hub's is pinned in the cloud and the cloud's let in at the hub. Later the hub's key is never pinned anew, so
 * that a changed one is refused; only another port is told.
 */
export function prepareManagement(options: {
  places: DemoPlaces
  hubId: number
  port: number
  /** The management service with `--host-key`. */
  hostKey: Tool
  /** `npm run hubs`. */
  hubs: Tool
}): void {
  const { places, port } = options
  const known = existsSync(places.managementFile)
    ? Known.parse(JSON.parse(readFileSync(places.managementFile, 'utf8')))
    : undefined
  if (known?.port === port) return
  if (!known) writeFileSync(places.authorizedKeys, '', { mode: 0o600 })
  const host_key = known?.host_key ?? HostKey.parse(run(options.hostKey, [])).host_key
  const address = ['--host', '127.0.0.1', '--port', String(port), '--host-key', host_key]
  const { cloud_key } = Registered.parse(
    run(options.hubs, ['set-management', String(options.hubId), ...address]),
  )
  if (!known) writeFileSync(places.authorizedKeys, `${cloud_key}\n`, { mode: 0o600 })
  writeJson(places.managementFile, { port, host_key })
}

function run({ command, environment }: Tool, args: readonly string[]): unknown {
  const { status, stdout, stderr, error } = spawnSync(command[0]!, [...command.slice(1), ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  if (status !== 0) throw new Error(`the hub's management could not be prepared: ${error?.message ?? stderr}`)
  return JSON.parse(stdout)
}

/**
 * Removes the links to the serial ports of a simulator that has died. The kernel gives its pseudo-terminals to whoever asks
 * next, and that may be another simulator on this machine: by a link that outlives the first, the hub would drive the
 * second one's hardware.
 */
export function unplug(hardwareFile: string): void {
  const { controllers } = HardwareDescription.parse(JSON.parse(readFileSync(hardwareFile, 'utf8')))
  for (const { port } of controllers)
    if (lstatSync(port, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(port)
}
