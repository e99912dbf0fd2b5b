import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { type DemoPlaces, SeedResult, writeJson } from './places.ts'

/** A command of Larder, and its variables in addition to this process's environment. */
interface Tool {
  command: readonly string[]
  environment: Readonly<Record<string, string>>
}

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
 * Makes the demo's data on the first start; later starts read it. An interrupted first start begins again without data,
 * because `seed.json` is written last.
 */
export async function prepareData(options: {
  places: DemoPlaces
  /** The command that fills the cloud's database and prints a `SeedResult`. */
  seed: Tool
  /** The demo hub's hardware from the repository, with relative serial ports. */
  hardwareTemplate: string
}): Promise<SeedResult> {
  const { places } = options
  if (!existsSync(places.seedFile)) dropData(places)
  for (const folder of [places.logs, places.cloud, places.hub, places.simulator])
    mkdirSync(folder, { recursive: true })
  if (existsSync(places.seedFile)) return SeedResult.parse(JSON.parse(readFileSync(places.seedFile, 'utf8')))

  const result = SeedResult.parse(await run(options.seed, [], "the demo's data could not be made"))
  writeJson(places.shelvesFile, result.shelves)
  writeJson(places.hardwareFile, hardwareAt(options.hardwareTemplate, places.hub))
  // An older seed program creates no keys.
  if (existsSync(places.releaseRoot)) copyFileSync(places.releaseRoot, places.updateRoot)
  writeJson(places.seedFile, result)
  return result
}

/** The hardware with its serial ports as links in `folder`, where the simulator makes them and the hub opens them. */
export function hardwareAt(template: string, folder: string): HardwareDescription {
  const hardware = HardwareDescription.parse(JSON.parse(readFileSync(template, 'utf8')))
  return {
    ...hardware,
    controllers: hardware.controllers.map((controller) => ({
      ...controller,
      port: join(folder, controller.port),
    })),
  }
}

const HostKey = z.object({ host_key: z.string() })
const Registered = z.object({ cloud_key: z.string() })
/** The cloud's record of the hub's management service. */
const Known = z.object({ port: z.int(), host_key: z.string() })

/**
 * Registers the hub's management service, with the same two commands as an operator. At the first start both sides make
 * their keys; the cloud pins the hub's key, and the hub permits the cloud's. Later starts never pin the hub's key again,
 * so a changed key is refused; they only report another port.
 */
export async function prepareManagement(options: {
  places: DemoPlaces
  hubId: number
  port: number
  /** The management service with `--host-key`. */
  hostKey: Tool
  /** `npm run hubs`. */
  hubs: Tool
}): Promise<void> {
  const { places, port } = options
  const failure = "the hub's management could not be prepared"
  const known = existsSync(places.managementFile)
    ? Known.parse(JSON.parse(readFileSync(places.managementFile, 'utf8')))
    : undefined
  if (known?.port === port) return
  if (!known) writeFileSync(places.authorizedKeys, '', { mode: 0o600 })
  const host_key = known?.host_key ?? HostKey.parse(await run(options.hostKey, [], failure)).host_key
  const address = ['--host', '127.0.0.1', '--port', String(port), '--host-key', host_key]
  const { cloud_key } = Registered.parse(
    await run(options.hubs, ['set-management', String(options.hubId), ...address], failure),
  )
  if (!known) writeFileSync(places.authorizedKeys, `${cloud_key}\n`, { mode: 0o600 })
  writeJson(places.managementFile, { port, host_key })
}

/** Runs a program of Larder that prints JSON. Rejects with `failure` and the program's error. */
async function run(
  { command, environment }: Tool,
  args: readonly string[],
  failure: string,
): Promise<unknown> {
  const env = { ...process.env, ...environment }
  try {
    const { stdout } = await promisify(execFile)(command[0]!, [...command.slice(1), ...args], {
      env,
      maxBuffer: 64 * 1024 * 1024,
    })
    return JSON.parse(stdout)
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`${failure}: ${stderr || message}`, { cause: error })
  }
}

/**
 * Removes the links to the serial ports of a simulator that has died. The kernel gives its pseudo-terminals to the next
 * program, which may be another simulator on this machine. With an old link, the hub would drive the hardware of that
 * simulator.
 */
export function unplug(hardwareFile: string): void {
  const { controllers } = HardwareDescription.parse(JSON.parse(readFileSync(hardwareFile, 'utf8')))
  for (const { port } of controllers)
    if (lstatSync(port, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(port)
}
