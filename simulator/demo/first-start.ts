import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { SeedResult, writeJson } from './demo-file.ts'
import type { DemoPlaces } from './places.ts'

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
