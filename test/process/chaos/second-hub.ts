import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import { hardwareAt, unplug } from '../../../simulator/demo/first-start.ts'
import { demoPlaces, writeJson, type SeedResult } from '../../../simulator/demo/places.ts'
import { startProxy } from '../../../simulator/demo/proxy.ts'
import { freePorts } from '../../support/ports.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'
import { createCommandTap } from './command-tap.ts'
import { WRONG_CLOCK, type Plant, type PlantOptions } from './plant.ts'
import { environments, quickEdge } from './plant-settings.ts'
import { skewFile, supervise, writeSkew } from './supervised.ts'

const HUB_ID = 2

/**
 * Adds hub 2 of the demo's data, with a simulator of its own. It uses the clouds and the broker of the plant. The result is
 * the plant as that hub's customers and staff see it; its programs are `hub` and `simulator`.
 */
export async function addSecondHub(
  plant: Plant,
  options: Pick<PlantOptions, 'runtime' | 'folder' | 'speed' | 'settings' | 'commandOf' | 'onFailure'>,
): Promise<Plant> {
  const { runtime, settings } = options
  const folder = join(options.folder, 'second')
  const places = demoPlaces(folder)
  for (const each of [places.logs, places.hub, places.simulator]) mkdirSync(each, { recursive: true })
  const [edge, simulator] = (await freePorts(2)) as [number, number]
  const broker = Number(new URL(plant.brokerUrl).port)
  const shelves = await shelvesOf(plant)
  writeJson(places.shelvesFile, shelves)
  const template = join(packageRoot(), 'simulator/hardware/demo-hub.json')
  writeJson(places.hardwareFile, { ...hardwareAt(template, places.hub), hubId: HUB_ID })
  const tap = createCommandTap(HUB_ID, runtime.clock)
  const proxy = await startProxy({ target: broker, clock: runtime.clock, listenIn: () => tap.listenIn() })
  const hubToken = randomHex(runtime.random, 16)
  const { databaseUrl } = plant
  const ports = { edge, simulator, broker, clouds: [] }
  const environment = environments({ places, ports, databaseUrl, cloudMqttUrl: undefined })
  const supervised = supervise({
    ...options,
    programs: [
      {
        name: 'simulator',
        command: commandOf('simulator/main'),
        environment: { ...environment.simulator(options.speed), ...settings?.simulator },
        logFile: places.log('simulator'),
      },
      {
        name: 'hub',
        command: commandOf('edge/main', WRONG_CLOCK),
        environment: {
          ...environment.hub(proxy.port, plant.seed.mqtt_passwords![HUB_ID]!, hubToken),
          ...quickEdge,
          ...settings?.hub,
          CLOCK_SKEW_FILE: skewFile(folder, 'hub'),
        },
        logFile: places.log('hub'),
      },
    ],
    onEnded(name) {
      if (name === 'simulator') unplug(places.hardwareFile)
    },
  })
  return {
    ...plant,
    hubId: HUB_ID,
    seed: { ...plant.seed, shelves },
    places,
    simulatorUrl: `http://127.0.0.1:${simulator}`,
    hubUrl: `http://127.0.0.1:${edge}`,
    hubToken,
    proxy,
    tap,
    ...supervised,
    skew: (name, byMs) => writeSkew(folder, name, byMs),
    async close() {
      await Promise.all(supervised.programs.map((name) => supervised.stop(name)))
      await proxy.close()
    },
  }
}

/** The content of the hub's shelves, as the cloud has counted it. */
async function shelvesOf({ databaseUrl }: Plant): Promise<SeedResult['shelves']> {
  const db = openDatabase({ url: databaseUrl })
  try {
    return await db.kysely
      .selectFrom('facings')
      .select(['cabinet', 'shelf', 'row', 'product_id', 'quantity as units'])
      .where('hub_id', '=', HUB_ID)
      .execute()
  } finally {
    await db.close()
  }
}
