import type { HardwareDescription } from '../protocol/model/hardware.ts'
import type { Clock } from '../protocol/model/runtime.ts'
import type { LoadedRow } from './physics/world-state.ts'
import type { SimulatedHub } from './simulated-hub.ts'
import type { SimulatorStorage } from './storage/append-log.ts'
import type { SavedWorld, WorldShelf } from './storage/world-shelf.ts'
import { createWireLog, type WireLog } from './wire-log.ts'

/** A simulated hub, reached by its ports, and what is written down of its lines. */
export interface Station {
  hub: SimulatedHub
  wire: WireLog
}

export interface FleetOptions {
  make(hardware: HardwareDescription, storage: SimulatorStorage, loaded?: LoadedRow[]): SimulatedHub
  storageOf(hubId: number): SimulatorStorage
  /** Makes the hub reachable; what it returns ends that. */
  mount(hub: SimulatedHub): Promise<() => Promise<void>>
  worlds: WorldShelf
  clock: Clock
  /** How many entries of the wire are kept for each hub. */
  wireKept: number
}

/** What cannot be done with the fleet, in words. */
export class FleetError extends Error {}

/** The simulated hubs of one program. Hubs come and go while it runs. */
export interface Fleet {
  readonly stations: ReadonlyMap<number, Station>
  add(hardware: HardwareDescription, loaded?: LoadedRow[]): Promise<Station>
  remove(hubId: number): Promise<void>
  /** The world as it was at the very beginning: full shelves, doors closed, boards without memory. */
  reset(hubId: number): Promise<void>
  save(hubId: number, name: string): void
  load(hubId: number, name: string): Promise<void>
  worlds(): string[]
  close(): Promise<void>
}

export function createFleet(options: FleetOptions): Fleet {
  const stations = new Map<number, Station>()
  const endings = new Map<number, () => Promise<void>>()
  /** Those that are still being mounted. */
  const mountings = new Map<number, Promise<() => Promise<void>>>()
  /** What the shelves of a hub held at the very beginning. */
  const beginnings = new Map<number, LoadedRow[]>()

  async function add(
    hardware: HardwareDescription,
    loaded = beginnings.get(hardware.hubId),
  ): Promise<Station> {
    const { hubId } = hardware
    if (stations.has(hubId)) throw new FleetError(`hub ${hubId} is simulated already`)
    const storage = options.storageOf(hubId)
    const hub = options.make(hardware, storage, loaded)
    const wire = createWireLog(hub, options.clock, options.wireKept)
    const station = { hub, wire }
    if (loaded) beginnings.set(hubId, loaded)
    // Before it is mounted, which takes a while: nobody adds it a second time meanwhile.
    stations.set(hubId, station)
    const end = (unmount: () => Promise<void>) => async () => {
      wire.stop()
      hub.stop()
      await unmount()
      storage.close()
    }
    const mounting = options.mount(hub)
    mountings.set(hubId, mounting)
    try {
      endings.set(hubId, end(await mounting))
    } catch (error) {
      stations.delete(hubId)
      await end(async () => {})()
      throw error
    } finally {
      mountings.delete(hubId)
    }
    return station
  }

  function stationOf(hubId: number): Station {
    const station = stations.get(hubId)
    if (!station) throw new FleetError(`hub ${hubId} is not simulated here`)
    return station
  }

  async function remove(hubId: number): Promise<void> {
    const { hub } = stationOf(hubId)
    // One that is seen may still be in the making: it goes when it is made.
    await Promise.allSettled([mountings.get(hubId)])
    const end = endings.get(hubId)
    if (!end) throw new FleetError(`hub ${hubId} is being taken away`)
    endings.delete(hubId)
    await end()
    if (stations.get(hubId)?.hub === hub) stations.delete(hubId)
  }

  /** The hub dies, its logs become others, and it begins anew on them. */
  async function replace(hubId: number, world: SavedWorld): Promise<void> {
    const { hardware } = stationOf(hubId).hub
    await remove(hubId)
    const storage = options.storageOf(hubId)
    for (const name of logNames(hardware)) storage.open(name).replace(world[name] ?? [])
    storage.close()
    await add(hardware)
  }

  return {
    stations,
    add,
    remove,
    reset: (hubId) => replace(hubId, {}),
    save(hubId, name) {
      const { hardware } = stationOf(hubId).hub
      const storage = options.storageOf(hubId)
      const logs = logNames(hardware).map((log) => [log, storage.open(log).read()] as const)
      storage.close()
      options.worlds.write(name, Object.fromEntries(logs))
    },
    async load(hubId, name) {
      const { hardware } = stationOf(hubId).hub
      const world = options.worlds.read(name)
      if (!world)
        throw new FleetError(
          `there is no world ${name}; worlds: ${options.worlds.names().join(', ') || 'none'}`,
        )
      const known = new Set(logNames(hardware))
      if (!Object.keys(world).every((log) => known.has(log)))
        throw new FleetError(`world ${name} is of a hub with other controllers`)
      await replace(hubId, world)
    },
    worlds: () => options.worlds.names(),
    async close() {
      await Promise.all([...endings.keys()].map(remove))
    },
  }
}

const logNames = ({ controllers }: HardwareDescription): string[] => [
  'world',
  ...controllers.map(({ id }) => `memory-${id}`),
]
