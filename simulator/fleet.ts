import type { HardwareDescription } from '../protocol/model/hardware.ts'
import type { Clock } from '../protocol/model/runtime.ts'
import type { LoadedRow } from './physics/world-state.ts'
import type { SimulatedHub } from './simulated-hub.ts'
import type { SimulatorStorage } from './storage/append-log.ts'
import type { SavedWorld, WorldShelf } from './storage/world-shelf.ts'
import { createWireLog, type WireLog } from './wire-log.ts'

/** A simulated hub, reached by its ports, and the log of its serial lines. */
export interface Station {
  hub: SimulatedHub
  wire: WireLog
  /** Milliseconds since the Unix epoch: the log of a later start counts its entries from 1 again. */
  startedAt: number
}

export interface FleetOptions {
  make(hardware: HardwareDescription, storage: SimulatorStorage, loaded?: LoadedRow[]): SimulatedHub
  storageOf(hubId: number): SimulatorStorage
  /** Makes the hub reachable; returns the function that ends that. */
  mount(hub: SimulatedHub): Promise<() => Promise<void>>
  worlds: WorldShelf
  clock: Clock
  /** Number of stored entries of each hub's serial lines. */
  wireKept: number
}

/** A request that the fleet refuses; the message is the reason. */
export class FleetError extends Error {}

/** The simulated hubs of one program. Hubs come and go while it runs. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #stations = new Map<number, Station>()
  readonly #endings = new Map<number, () => Promise<void>>()
  /** The hubs that are still being mounted. */
  readonly #mountings = new Map<number, Promise<() => Promise<void>>>()
  /** The initial contents of each hub's shelves. */
  readonly #beginnings = new Map<number, LoadedRow[]>()

  constructor(options: FleetOptions) {
    this.#options = options
  }

  get stations(): ReadonlyMap<number, Station> {
    return this.#stations
  }

  async add(hardware: HardwareDescription, loaded = this.#beginnings.get(hardware.hubId)): Promise<Station> {
    const { hubId } = hardware
    if (this.#stations.has(hubId)) throw new FleetError(`hub ${hubId} is simulated already`)
    const storage = this.#options.storageOf(hubId)
    const hub = this.#options.make(hardware, storage, loaded)
    const wire = createWireLog(hub, this.#options.clock, this.#options.wireKept)
    const station = { hub, wire, startedAt: this.#options.clock.now() }
    if (loaded) this.#beginnings.set(hubId, loaded)
    // The entry comes before the slow mount, so that the hub cannot be added a second time.
    this.#stations.set(hubId, station)
    const end = (unmount: () => Promise<void>) => async () => {
      wire.stop()
      hub.stop()
      await unmount()
      storage.close()
    }
    const mounting = this.#options.mount(hub)
    this.#mountings.set(hubId, mounting)
    try {
      this.#endings.set(hubId, end(await mounting))
    } catch (error) {
      this.#stations.delete(hubId)
      await end(async () => {})()
      throw error
    } finally {
      this.#mountings.delete(hubId)
    }
    return station
  }

  async remove(hubId: number): Promise<void> {
    const { hub } = this.#stationOf(hubId)
    // The hub may still be mounted: it is removed when that has ended.
    await Promise.allSettled([this.#mountings.get(hubId)])
    const end = this.#endings.get(hubId)
    if (!end) throw new FleetError(`hub ${hubId} is being taken away`)
    this.#endings.delete(hubId)
    await end()
    if (this.#stations.get(hubId)?.hub === hub) this.#stations.delete(hubId)
  }

  /** Restores the initial world: full shelves, closed doors, boards without memory. */
  reset(hubId: number): Promise<void> {
    return this.#replace(hubId, {})
  }

  save(hubId: number, name: string): void {
    const { hardware } = this.#stationOf(hubId).hub
    const storage = this.#options.storageOf(hubId)
    const logs = logNames(hardware).map((log) => [log, storage.open(log).read()] as const)
    storage.close()
    this.#options.worlds.write(name, Object.fromEntries(logs))
  }

  async load(hubId: number, name: string): Promise<void> {
    const { hardware } = this.#stationOf(hubId).hub
    const world = this.#options.worlds.read(name)
    if (!world)
      throw new FleetError(
        `there is no world ${name}; worlds: ${this.#options.worlds.names().join(', ') || 'none'}`,
      )
    const known = new Set(logNames(hardware))
    if (!Object.keys(world).every((log) => known.has(log)))
      throw new FleetError(`world ${name} is of a hub with other controllers`)
    await this.#replace(hubId, world)
  }

  worlds(): string[] {
    return this.#options.worlds.names()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#endings.keys()].map((hubId) => this.remove(hubId)))
  }

  #stationOf(hubId: number): Station {
    const station = this.#stations.get(hubId)
    if (!station) throw new FleetError(`hub ${hubId} is not simulated here`)
    return station
  }

  /** Stops the hub, replaces its logs, and starts it again on them. */
  async #replace(hubId: number, world: SavedWorld): Promise<void> {
    const { hardware } = this.#stationOf(hubId).hub
    await this.remove(hubId)
    const storage = this.#options.storageOf(hubId)
    for (const name of logNames(hardware)) storage.open(name).replace(world[name] ?? [])
    storage.close()
    await this.add(hardware)
  }
}

const logNames = ({ controllers }: HardwareDescription): string[] => [
  'world',
  ...controllers.map(({ id }) => `memory-${id}`),
]
